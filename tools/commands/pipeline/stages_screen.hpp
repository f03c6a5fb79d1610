#pragma once
// What an exploration of stages means for its reader.

#include <string>
#include <vector>

#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/terminal/screen.hpp"

namespace rubato {

/// Every plan is judged: its verdict and marks are known.
/// @param jitter_frac    of each pass's time; 0: plans are not replayed with it
/// @param db, plan_file  where plans are kept; see play_text()
[[nodiscard]] ShownRun shown_run(const PipelineInput& input, const LoadedPipeline& loaded,
                                 const PipelinePlanner& planner,
                                 const std::vector<PipelineResult>& plans, double jitter_frac,
                                 double odds_frac, const std::string& db,
                                 const std::string& plan_file);

}  // namespace rubato
