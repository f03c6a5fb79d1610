#pragma once
// What sets the clocks of stages: the plan file, or lines to type.

#include <string>
#include <vector>

#include "tools/commands/pipeline/subcommands.hpp"

namespace rubato {

/// The answer, then the plans with more time. Where no plan can be set on GPUs, the first one,
/// which says so.
/// @pre a plan was found
/// @throws NoPlanError if the default clocks are the answer, unless the command is interrupted
[[nodiscard]] PlanFile file_of_plans(const PipelineInput& input, const PipelinePlanner& planner,
                                     const std::vector<PipelineResult>& plans,
                                     const LoadedPipeline& loaded, const std::string& command);

/// Where each stage has one clock: these, and below them lines to type. Else, or where the GPU is
/// not known, empty.
/// @param plan  found
[[nodiscard]] std::string stage_lines(const PipelineInput& input, const PipelinePlanner& planner,
                                      const PipelineResult& plan, const LoadedPipeline& loaded);

}  // namespace rubato
