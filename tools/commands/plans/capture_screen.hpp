#pragma once
// What an exploration of captured runs means for its reader.

#include <string>

#include "explorer/results/capture_rows.hpp"
#include "tools/terminal/screen.hpp"

namespace rubato {

/// Of the time in which a GPU works, in the mean over GPUs.
[[nodiscard]] double busy_share(const GraphRun& run);

/// @param db, plan_file  where plans are kept; see play_text()
[[nodiscard]] ShownRun shown_run(const GraphExplorationInput& input, const GraphRequest& request,
                                 const GraphExploration& found, const std::string& db,
                                 const std::string& plan_file);

}  // namespace rubato
