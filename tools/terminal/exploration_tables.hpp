#pragma once
// An exploration as tables for the terminal and for programs.

#include <optional>
#include <span>
#include <string>

#include "explorer/exploration.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// The one clock of a plan, or how many it has.
[[nodiscard]] std::string clocks_text(const ClockGrid& grid, std::span<const ClockId> clocks);

/// The solver's status, or "limit not reached": a plan within a power limit that no clock enforces
/// is the best of nothing.
[[nodiscard]] std::string status_text(SolveStatus status, std::span<const Mark> marks);

/// One row per plan, the default clocks first; change against the default clocks in percent.
[[nodiscard]] OutputTable plans_table(const Exploration& found);

/// What a little more time is worth: per granularity, the least energy of its front within slacks
/// of 0 to 5 %. No rows without a front.
[[nodiscard]] OutputTable slacks_table(const Exploration& found);

/// What that saving comes to at the prices of goal `cost`: the same points, change of cost. Where
/// it rises, more slack is not worth its time. No rows without prices.
[[nodiscard]] OutputTable costs_table(const Exploration& found);

/// Of goal `cost`, if it was asked for.
[[nodiscard]] std::optional<Prices> asked_prices(const Exploration& found);

/// One row per plan and mark, with its reason.
[[nodiscard]] OutputTable notes_table(const Exploration& found);

/// One line for each kind of mark, with the reason of the first row that has it.
[[nodiscard]] std::string marks_text(const Exploration& found);

/// One row per plan and pass.
[[nodiscard]] OutputTable passes_table(const Exploration& found);

/// One row per plan and kernel, with the clock chosen.
[[nodiscard]] OutputTable kernels_table(const Trace& trace, const Exploration& found);

/// One row per segment that a plan of granularity 'auto' chose: launches in a row that share a
/// clock, as often as their block repeats them.
[[nodiscard]] OutputTable segments_table(const Trace& trace, const Exploration& found);

/// What a reader must know beside the numbers: marks, what the interval is of.
[[nodiscard]] std::string exploration_notes(const ExplorationInput& input,
                                            const Exploration& found);

}  // namespace rubato
