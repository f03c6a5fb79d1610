#pragma once
// Pipeline plans as a file of our own, for programs that set clocks.

#include <span>
#include <string>
#include <vector>

#include "explorer/pipeline/applied_stages.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/stage_model.hpp"

namespace rubato {

/// JSON: `schema`, `kind`, and for each plan that was found its deadline, time, energy, whether it
/// can be applied, else why not, and stages.
/// A stage lists its passes in running order: pass, microbatch, chunk, option, core_mhz and
/// mem_mhz, and power_limit_w where that is a choice. A clock is null if it is not a choice, or if
/// the kernels of the pass have different ones. With clocks per kernel each stage also has
/// `kernels`: for each option in use the clock of every kernel of the pass.
/// @param kernel_clocks  as LoadedPipeline has them; empty for measured profiles
/// @param verdicts       shape [plans]
[[nodiscard]] std::string pipeline_plan_json(const PipelineWork& work,
                                             std::span<const PipelineResult> plans,
                                             const std::vector<KernelClocks>& kernel_clocks,
                                             std::span<const PlanVerdict> verdicts);

}  // namespace rubato
