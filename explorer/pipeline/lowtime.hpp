#pragma once
// What lowtime, the solver of Perseus, does with a profile: for comparison with published figures.
// Rubato's own plans do not use this.

#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "sim/pipeline_run.hpp"

namespace rubato {

/// cost_j(q) = scale x exp(rate x q) + base, with the time q in units of the time step.
struct ExponentialFit {
  double scale = 0.0;
  double rate = 0.0;  ///< per time step, < 0
  double base = 0.0;
  int first_q = 0;  ///< time of the fastest option kept
  int last_q = 0;   ///< time of the slowest one

  [[nodiscard]] double cost_j(double q) const;
};

/// Fits the options of a pass as lowtime sees them. Options that are no faster than another one and
/// use as much energy or more are dropped. Times are floored to steps, and of equal times the
/// costliest option is kept. Cost is energy minus blocked power x floored time. The fit is by least
/// squares: linear for a given rate, with the rate by golden-section search.
/// @param unit_s  time step, > 0
/// @throws DataError if fewer than three times are left
[[nodiscard]] ExponentialFit fit_lowtime(const PassType& type, double blocked_power_w,
                                         double unit_s);

/// lowtime's fastest plan. Durations are planned on the fitted costs; then each pass gets its
/// slowest clock whose floored time is no longer.
struct LowtimeResult {
  double planned_time_s = 0.0;
  double planned_energy_j = 0.0;  ///< fitted costs, and waiting until planned_time_s: as published
  PipelinePlan plan;
  PipelineRun run;  ///< may end after planned_time_s: floored times are too short
};

/// @param unit_s  lowtime's time step; in the published results 1 ms for A100 and 0.1 ms for A40
/// @throws DataError as fit_lowtime()
[[nodiscard]] LowtimeResult emulate_lowtime(const PipelineWork& work, double unit_s = 1e-3);

/// The energy that Perseus counts savings from: all passes at their highest clocks, and blocked
/// power for the rest of `time_s` on each stage. `time_s` may be shorter than the passes take: the
/// rest is then negative.
[[nodiscard]] double highest_clocks_energy_j(const PipelineWork& work, double time_s);

/// The fitted problem: one curve per pass type with a vertex per step.
[[nodiscard]] CrashProblem lowtime_problem(const PipelineWork& work,
                                           const std::vector<ExponentialFit>& fits, double unit_s);

}  // namespace rubato
