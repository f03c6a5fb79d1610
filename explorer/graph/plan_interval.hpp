#pragma once
// How far off a plan of a captured run may be though the captured times are exact: the model says
// what changes when clocks change, and errs. docs/graphs.md, section 3; how often the intervals
// hold: explorer/confidence/coverage.hpp.

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "explorer/confidence/error_reach.hpp"
#include "models/table/profile_table.hpp"
#include "models/validation/model_errors.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// A plan's change against the default clocks, as fractions.
struct PlanChange {
  double time_frac = 0.0;
  double energy_frac = 0.0;
};

/// 90 % interval of a plan's change.
struct GraphPlanInterval {
  PlanChange low, high;
};

/// Draws of what the model leaves open, each of which all plans of a run meet: how captured times
/// split into core and memory and how far core energies are off, in common to the kernels of a
/// class (mostly each function's own where not even the class is known); the fits of kernels that
/// were measured; and errors no model of this form is free of, a part that all kernels share and
/// one of each source (the fit a kernel's coefficients come from, else its function: other grids of
/// it err alike).
class GraphPlanIntervals {
 public:
  /// @param model, grid  of plans; must outlive it
  /// @param as_captured  the same kernels with collectives on their captured SMs
  /// @param baseline     the default clocks, replayed as captured
  GraphPlanIntervals(const GraphModel& model, const GraphModel& as_captured, const ClockGrid& grid,
                     const GraphRun& baseline);

  /// To first order: launches on the path that ends last draw out the run; energies add up. Idle
  /// power while one GPU waits longer for another is left out, as is what no clock changes.
  /// @param run  of the plan
  /// @return reaches to what the model itself says
  [[nodiscard]] GraphPlanInterval of(const GraphPlan& plan, const GraphRun& run) const;

 private:
  // Launches of one kernel at one clock.
  struct Part {
    double path_s = 0.0;  // on the path that ends last
    double energy_j = 0.0;
    ErrorReach reach;  // of the errors of its change of clock, see error_reach
  };
  using Parts = std::map<std::pair<KernelId, ClockId>, Part>;

  [[nodiscard]] static Parts parts_of(const GraphModel& model, const GraphPlan& plan,
                                      const GraphRun& run);
  [[nodiscard]] ErrorReach reach(KernelId kernel, ClockId clock) const;
  [[nodiscard]] Cost drawn(std::size_t model, KernelId kernel, ClockId clock) const;
  [[nodiscard]] Cost total(const Parts& parts, const GraphRun& run, std::size_t model,
                           std::span<const Cost> logarithms) const;

  const GraphModel& model_;
  const ClockGrid& grid_;
  RelativeErrors scale_;                                  // of intervals
  Cost base_;                                             // the default clocks, by the model
  std::vector<Cost> bases_;                               // and drawn, shape [models]
  std::vector<GpuSpec> specs_;                            // shape [models]
  std::vector<std::vector<KernelCoefficients>> kernels_;  // shape [models][kernels]
  std::vector<std::size_t> source_of_kernel_;
  std::size_t sources_ = 0;
  std::vector<Cost> errors_;  // logarithms, shape [models x draws_per_model x sources]
};

/// Activities of the path that ends last: what each of them takes longer, the run takes longer.
/// @return in reverse order of time
[[nodiscard]] std::vector<ActivityId> last_path(const ExecutionGraph& graph, const GraphRun& run);

}  // namespace rubato
