#pragma once
// What an exploration means for its reader, before the tables: what was planned on what, what to
// set, and what that gives.

#include <string>
#include <string_view>

#include "explorer/exploration.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// What was planned on what, and what it takes at the default clocks. One line, or two.
[[nodiscard]] std::string exploration_heading(std::string_view trace, const ExplorationInput& input,
                                              const Exploration& found);

/// The same for programs, in one row: version, limits, default clocks, and what the times of
/// kernels rest on, as shares of the default time.
[[nodiscard]] OutputTable run_table(std::string_view trace, const ExplorationInput& input,
                                    const Exploration& found);

/// Of the plans that are in time, changes of clock counted where the spec knows them, the one clock
/// for all and the plan of several clocks that save most, each with the lines that set it.
/// @param db  see play_lines
[[nodiscard]] std::string exploration_answer(const ExplorationInput& input,
                                             const Exploration& found, std::string_view db);

}  // namespace rubato
