#pragma once
// Pipeline plans as a file of our own, for programs that set clocks, and whether they can be set.

#include <span>
#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "explorer/plan/applicable.hpp"

namespace rubato {

/// Judges the clocks of each stage over an iteration, which repeats; waiting is part of the stretch
/// that it comes after. A pass whose kernels have different clocks cannot be set: what its changes
/// take is not counted.
/// @param run            of the plan
/// @param kernel_clocks  of ModelProfile; empty for a measured profile
/// @param switching      see switching_in_earnest()
[[nodiscard]] PlanVerdict applicable(const PipelineWork& work, const PipelinePlan& plan,
                                     const PipelineRun& run,
                                     const std::vector<KernelClocks>& kernel_clocks,
                                     const SwitchModel& switching);

/// JSON: `schema`, `kind`, and for each plan that was found its deadline, time, energy, whether it
/// can be applied, else why not, and stages.
/// A stage lists its passes in running order: pass, microbatch, chunk, option, core_mhz and
/// mem_mhz, and power_limit_w where that is a choice. A clock is null if it is not a choice, or if
/// the kernels of the pass have different ones. With clocks per kernel each stage also has
/// `kernels`: for each option in use the clock of every kernel of the pass.
/// @param kernel_clocks  as LoadedPipeline has them; empty for measured profiles
[[nodiscard]] std::string pipeline_plan_json(const PipelineWork& work,
                                             std::span<const PipelineResult> plans,
                                             const std::vector<KernelClocks>& kernel_clocks);

}  // namespace rubato
