#pragma once
// What an exploration means for its reader, before the tables: what was planned on what, what to
// set, and what that gives.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

/// The answer of the exploration, with the lines that set it; where it has several clocks, before
/// it the best one clock for all. Of the goals asked first, and of least cost.
/// @param db  see play_lines
[[nodiscard]] std::string exploration_answer(const ExplorationInput& input,
                                             const Exploration& found, std::string_view db);

/// What the times of kernels rest on: "72.1 % measured, 27.9 % guessed". Tiny shares are left out.
/// @param parts  percent of the time, and what is so
[[nodiscard]] std::string shares_text(
    std::initializer_list<std::pair<double, std::string_view>> parts);

/// ", with 93 % odds"; empty where odds are not known. @param odds_in_time  0 to 1
[[nodiscard]] std::string odds_words(const std::optional<double>& odds_in_time);

/// " with 90 % odds", that were asked for; empty where none were.
[[nodiscard]] std::string asked_odds_words(double odds_frac);

/// What a plan would save that was not made for the odds asked for, as a line; empty if there is
/// none.
[[nodiscard]] std::string bolder_line(const std::optional<BolderPlan>& bolder);

/// A clock as one says it: "memory 9251, core 1890 MHz"; anything else, such as "12 clocks", as it
/// is.
[[nodiscard]] std::string clock_words(std::string_view label);

/// What has a clock of its own, in the words that begin an answer: "Per kernel", "Per segment (run
/// of launches)".
[[nodiscard]] std::string per_text(std::string_view granularity);

}  // namespace rubato
