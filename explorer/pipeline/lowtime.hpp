#pragma once
// What lowtime, the solver of Perseus, does with a profile: for comparison with
// published figures. Rubato's own plans do not use it.

#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "sim/pipeline_run.hpp"

namespace rubato {

/// cost_j(q) = scale x exp(rate x q) + base, q in units of the time step.
struct ExponentialFit {
  double scale = 0.0;
  double rate = 0.0;  ///< < 0
  double base = 0.0;
  int first_q = 0;  ///< fastest option kept
  int last_q = 0;   ///< slowest

  [[nodiscard]] double cost_j(double q) const;
};

/// Options as lowtime sees them: those dropped that use more energy and are no faster, times
/// floored to steps, of equal times the costliest kept; cost is energy minus blocked power x
/// floored time. Then least squares over the options kept: for a given rate the rest is
/// linear, and the rate is found by golden sections.
/// @param unit_s  time step, > 0
/// @throws DataError if fewer than three times are left
[[nodiscard]] ExponentialFit fit_lowtime(const PassType& type, double blocked_power_w,
                                         double unit_s);

/// lowtime's fastest plan: on the fitted costs, then each pass at its slowest clock whose
/// floored time fits.
struct LowtimeResult {
  double planned_time_s = 0.0;
  double planned_energy_j = 0.0;  ///< fitted costs, and waiting until then: what it publishes
  PipelinePlan plan;
  PipelineRun run;  ///< may end after planned_time_s: floored times are too short
};

/// @param unit_s  lowtime's time step; in the published results 1 ms for A100 and 0.1 ms for A40
[[nodiscard]] LowtimeResult emulate_lowtime(const PipelineWork& work, double unit_s = 1e-3);

/// What Perseus subtracts from: all passes at their highest clocks, and blocked power for what
/// `time_s` leaves to each stage. The time may be shorter than these passes take.
[[nodiscard]] double highest_clocks_energy_j(const PipelineWork& work, double time_s);

/// The fitted problem: one curve per pass type with a vertex per step.
[[nodiscard]] CrashProblem lowtime_problem(const PipelineWork& work,
                                           const std::vector<ExponentialFit>& fits, double unit_s);

}  // namespace rubato
