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

/// How to set the answer: where each stage has one clock, these and lines to type; else which
/// options write files.
/// @param writes_files  these are given
[[nodiscard]] std::string setting_note(const PipelineInput& input, const PipelinePlanner& planner,
                                       const std::vector<PipelineResult>& plans,
                                       const LoadedPipeline& loaded, bool writes_files);

}  // namespace rubato
