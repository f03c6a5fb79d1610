#pragma once
// How far off a plan of a captured run may be. Captured times are exact, but what other clocks
// change is the model's word, and it errs. docs/graphs.md, section 3. explorer/coverage.hpp says
// how often the intervals hold.

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "explorer/confidence/confidence.hpp"
#include "explorer/confidence/seen_times.hpp"
#include "models/table/profile_table.hpp"
#include "models/validation/model_errors.hpp"
#include "models/validation/uncertainty.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// A plan's change against the default clocks: -0.02 is 2 % less.
struct PlanChange {
  double time_frac = 0.0;
  double energy_frac = 0.0;
};

/// 90 % interval of a plan's change, for time and energy each, and the draws of its time.
struct GraphPlanInterval {
  PlanChange low, high;
  TimeDraws times = {};
};

/// Monte Carlo draws of what the model leaves open. All plans of a run meet the same draws:
/// - Of captured kernels: which measured kernel each function is like (draw_captured). A deadline
///   does not lean on a power limit that nobody saw: their times are those without one.
/// - Of kernels that were captured at several clocks: the same, between the times that were seen.
/// - Of kernels that were fitted by name: their fits, and errors that no model of this form is free
///   of: a part that all kernels share, and one of each source. A source is the fit that a kernel's
///   coefficients come from, else its function: launches with other grids err alike.
class GraphPlanIntervals {
 public:
  /// @param model, grid  of plans; must outlive this
  /// @param as_captured  the same kernels with collectives on their captured SMs
  /// @param baseline     the default clocks, replayed as captured
  GraphPlanIntervals(const GraphModel& model, const GraphModel& as_captured, const ClockGrid& grid,
                     const GraphRun& baseline);

  /// To first order: the run takes longer by what launches on its critical path take longer, and
  /// energies add up. Left out is idle power while one GPU waits longer for another.
  /// @param run  of the plan
  /// Times stay within what clocks can change, see TimeBand; ends of intervals with captured
  /// kernels move out by what measured times scatter. Where several steps were captured, their
  /// change of time is the mean over many such steps, as far as these tell.
  /// @return widened, where needed, to hold what the model itself says
  [[nodiscard]] GraphPlanInterval of(const GraphPlan& plan, const GraphRun& run) const;

  /// 90 % interval of the energy at the default clocks, J: the draws say how near to its power
  /// limit each kernel runs. It holds what the model says.
  [[nodiscard]] std::pair<double, double> default_energy_j() const;

  /// Changes of time and energy in every draw, in %: not cut to what is possible.
  [[nodiscard]] std::vector<Cost> changes_pct(const GraphPlan& plan, const GraphRun& run) const;

 private:
  // A launch in one draw.
  struct DrawnLaunch {
    Cost cost;  // its time as deadlines count it: no power limit holds it
    // Its time where the limit holds it; below all clocks that it was seen at, as of measured
    // kernels that follow the clock as much. What a limit held there looks as if it followed none.
    double early_s = 0.0;
  };
  // Launches of one kernel at one clock.
  struct Part {
    double path_s = 0.0;  // on the critical path
    double energy_j = 0.0;
    ErrorReach reach;              // of the errors of its change of clock, see error_reach
    double log_ratio = 0.0;        // ln of the default core clock over its own, absolute
    std::optional<double> unseen;  // see distance_to(), where the kernel's times were seen
    double of_limit = 0.0;         // its power as captured over the power limit
    Cost own;                      // of a launch, by the model
    const std::vector<DrawnLaunch>*drawn = nullptr, *usual = nullptr;  // and in draws; at default
                                                                       // clocks
    TimeBand band;  // of its time at the default clocks, in the model and in every draw
  };
  using Parts = std::map<std::pair<KernelId, ClockId>, Part>;

  [[nodiscard]] Parts parts_of(const GraphModel& model, const GraphPlan& plan,
                               const GraphRun& run) const;
  // @param early  see DrawnLaunch
  [[nodiscard]] SavingDraws draws(const Parts& parts, const GraphRun& run, bool early) const;
  void set_errors(Part& part, KernelId kernel, ClockId clock) const;
  [[nodiscard]] double scatter_of_steps(const GraphRun& run) const;
  [[nodiscard]] Interval possible_time(const Parts& parts, const GraphRun& run) const;
  // Time and energy of a launch in each draw of the models.
  [[nodiscard]] const std::vector<DrawnLaunch>& drawn(KernelId kernel, ClockId clock) const;
  [[nodiscard]] bool is_like_another(KernelId kernel) const;
  [[nodiscard]] std::vector<SeenTime> seen(KernelId kernel, ClockId clock) const;
  [[nodiscard]] Cost error_of(std::size_t draw, KernelId kernel, const Part& part) const;
  [[nodiscard]] Cost total(const Parts& parts, const GraphRun& run, std::size_t model,
                           std::optional<std::size_t> draw, bool early) const;

  const GraphModel& model_;
  const ClockGrid& grid_;
  Cost base_;                                             // the default clocks, by the model
  std::vector<Cost> bases_;                               // and by each draw, shape [models]
  std::vector<double> base_step_s_;                       // the default clocks, shape [steps]
  std::vector<GpuSpec> specs_;                            // shape [models]
  std::vector<std::vector<KernelCoefficients>> kernels_;  // shape [models][kernels]
  std::vector<std::size_t> source_of_kernel_;
  std::size_t sources_ = 0;
  std::vector<Cost> errors_;      // logarithms, shape [models x draws_per_model x sources]
  std::vector<Cost> unshaped_;    // standard Gaussians, shape [models x draws_per_model]
  std::vector<double> seen_mhz_;  // core clocks of several captures, highest first; else empty
  mutable FunctionQuantiles quantiles_;
  std::size_t powers_seen_ = 0;  // in how many of these captures
  double scatter_pct_ = 0.0;     // of measured times
  double fall_pct_ = 0.0;        // how far they fall with the clock, see time_fall_key
  bool swept_ = false;           // the GPU has kernels of its own among the measured ones
  mutable std::map<std::pair<KernelId, ClockId>, std::vector<DrawnLaunch>> drawn_;
};

/// Activities of the critical path: what each of them takes longer, the run takes longer.
/// @return last one first; empty for an empty graph
[[nodiscard]] std::vector<ActivityId> last_path(const ExecutionGraph& graph, const GraphRun& run);

}  // namespace rubato
