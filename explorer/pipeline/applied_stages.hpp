#pragma once
// Whether the GPUs of a pipeline can be set to a plan.

#include <vector>

#include "explorer/pipeline/stage_model.hpp"
#include "explorer/plan/applicable.hpp"
#include "sim/pipeline_run.hpp"

namespace rubato {

/// Whether all kernels of a pass have one clock.
/// @param kernel_clocks  of ModelProfile; empty for a measured profile
[[nodiscard]] bool share_a_clock(const PipelinePass& pass, const PipelineShape& shape,
                                 std::size_t option,
                                 const std::vector<KernelClocks>& kernel_clocks);

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

}  // namespace rubato
