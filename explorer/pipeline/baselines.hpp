#pragma once
// What other methods make of a pipeline, to be put beside a plan: for comparison only.

#include <optional>
#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"

namespace rubato {

/// A method's plan, and ours against it.
struct BaselineResult {
  std::string method;
  std::string source;  ///< publication, or what it is
  PipelinePlan plan;
  PipelineRun run;  ///< replayed under the planner's switching
  /// Our plan that ends no later; nothing if the run is faster than any of our plans.
  std::optional<PipelineResult> at_equal_time;
  /// Our fastest plan found that uses no more energy; nothing if there is none.
  std::optional<PipelineResult> at_equal_energy;
};

/// Highest clocks; one clock for all passes (the highest that is cheapest within the baseline's
/// time, as Zeus does it for a whole pipeline, with clocks in place of power limits); one clock per
/// stage that balances forward passes (Zeus per stage); the last stage at its highest clock and all
/// other passes as slow as that allows (EnvPipe, Choi et al., USENIX ATC 2023); and lowtime's
/// fastest plan, where the profile lets it be emulated (Perseus).
/// @param unit_s  lowtime's time step
[[nodiscard]] std::vector<BaselineResult> compare_baselines(const PipelinePlanner& planner,
                                                            const SwitchModel& switching,
                                                            double unit_s,
                                                            const RunContext& context = {});

/// Every pass of a stage at the slowest clock at which its forward pass takes no longer than that
/// of the slowest stage at its highest clock.
[[nodiscard]] PipelinePlan balanced_stages(const PipelineWork& work);

/// The last stage at its highest clocks; passes of other stages are slowed down as long as the
/// iteration takes no longer, the largest saving per second first.
[[nodiscard]] PipelinePlan slowed_around_last_stage(const PipelineWork& work);

/// The clock that is cheapest for all passes within the time of the highest clocks.
[[nodiscard]] PipelinePlan one_clock(const PipelineWork& work);

}  // namespace rubato
