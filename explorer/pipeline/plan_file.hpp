#pragma once
// Pipeline plans as files that set clocks, and whether they can be set.

#include <span>
#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "explorer/plan/applicable.hpp"
#include "explorer/plan/plan_file.hpp"

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

/// What plans of a pipeline are written with.
struct PipelineFileInput {
  const PipelineWork& work;
  const PipelineRun& baseline;
  const std::vector<KernelClocks>& kernel_clocks;  ///< of ModelProfile; empty: a measured profile
  const GpuSpec* spec = nullptr;                   ///< null: a measured profile that names no GPU
  SwitchModel switching;                           ///< see switching_in_earnest()
  PlanFileRun run;  ///< what is known of it beside the work: created by the caller
};

/// Plans of all stages, a segment for each pass. A pass whose kernels have different clocks has
/// none: its kernels are listed.
/// @param plans  the answer, then those with more slack; all found
[[nodiscard]] PlanFile pipeline_plan_file(PipelineFileInput input,
                                          std::span<const PipelineResult* const> plans);

}  // namespace rubato
