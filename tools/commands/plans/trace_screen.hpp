#pragma once
// What an exploration of a trace means for its reader.

#include <string>

#include "explorer/exploration.hpp"
#include "tools/terminal/screen.hpp"

namespace rubato {

/// @param work           how the trace is called
/// @param db, plan_file  where plans are kept; see play_text()
[[nodiscard]] ShownRun shown_run(const std::string& work, const ExplorationInput& input,
                                 const Exploration& found, const std::string& db,
                                 const std::string& plan_file);

}  // namespace rubato
