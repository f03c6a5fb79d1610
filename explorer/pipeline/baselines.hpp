#pragma once
// Plans of a pipeline by other methods, emulated. They are for comparison only.

#include <optional>
#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"

namespace rubato {

/// A method's plan, and ours against it.
struct BaselineResult {
  std::string method;
  std::string source;  ///< where the method is from; empty for the highest clocks
  PipelinePlan plan;
  PipelineRun run;  ///< replayed with what changes of clock take
  /// Our plan that takes no longer; nothing if the run is faster than any of our plans.
  std::optional<PipelineResult> at_equal_time;
  /// The fastest plan found of ours that takes no more energy; nothing if there is none.
  std::optional<PipelineResult> at_equal_energy;
};

/// Puts our plans beside those of five methods:
/// - the highest clocks;
/// - one clock for all passes, as Zeus does it for a whole pipeline (with clocks in place of power
///   limits);
/// - one clock per stage that balances forward passes (Zeus per stage);
/// - the last stage at its highest clock and all other passes as slow as that allows (EnvPipe, Choi
///   et al., USENIX ATC 2023);
/// - the fastest plan of lowtime, the solver of Perseus. It is left out if the profile has too few
///   times for lowtime.
/// @param switching  what a change of clock takes when the methods' plans are replayed
/// @param unit_s     lowtime's time step, s
[[nodiscard]] std::vector<BaselineResult> compare_baselines(const PipelinePlanner& planner,
                                                            const SwitchModel& switching,
                                                            double unit_s,
                                                            const RunContext& context = {});

/// All passes of a stage at one clock: the lowest at which its forward pass takes no longer than
/// the forward pass of the slowest stage at the highest clock.
[[nodiscard]] PipelinePlan balanced_stages(const PipelineWork& work);

/// The last stage at its highest clocks; passes of other stages are slowed down as long as the
/// iteration takes no longer, the largest saving per second first.
[[nodiscard]] PipelinePlan slowed_around_last_stage(const PipelineWork& work);

/// All passes at one clock: the one of least energy that takes no longer than the highest clocks.
[[nodiscard]] PipelinePlan one_clock(const PipelineWork& work);

}  // namespace rubato
