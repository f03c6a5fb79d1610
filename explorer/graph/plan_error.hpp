#pragma once
// How far off a plan of a captured run may be though the captured times are exact: the model says
// what changes when clocks change, and errs. docs/graphs.md, section 3.

#include <span>
#include <vector>

#include "models/table/profile_table.hpp"
#include "models/validation/model_errors.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// A plan's change against the default clocks, as fractions.
struct PlanChange {
  double time_frac = 0.0;
  double energy_frac = 0.0;
};

/// 5th and 95th percentile of what a plan really takes over what the simulator says, less 1.
struct PlanError {
  PlanChange low, high;  ///< low <= 0 <= high
};

/// Draws of the errors of a model's changes of clock, one of each kernel and one that all share
/// (draw_change_errors); which of them a plan meets depends on how far its clocks are from the
/// default ones (error_reach).
class PlanErrors {
 public:
  /// @param model, grid  must outlive it
  PlanErrors(const GraphModel& model, const ClockGrid& grid);

  /// To first order: launches on the path that ends last draw out the run; energies add up. Idle
  /// power while one GPU waits longer for another is left out, as is what no clock changes.
  /// @param run  of the plan
  [[nodiscard]] PlanError of(const GraphPlan& plan, const GraphRun& run) const;

 private:
  const GraphModel& model_;
  RelativeErrors scale_;  ///< of intervals
  std::vector<double> reach_of_clock_;
  std::vector<Cost> draws_;  ///< logarithms, shape [draws x kernels]
};

/// Activities of the path that ends last: what each of them takes longer, the run takes longer.
/// @return in reverse order of time
[[nodiscard]] std::vector<ActivityId> last_path(const ExecutionGraph& graph, const GraphRun& run);

}  // namespace rubato
