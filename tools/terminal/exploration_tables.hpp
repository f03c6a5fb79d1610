#pragma once
// An exploration as tables for the terminal and for programs.

#include <optional>
#include <span>
#include <string>

#include "explorer/exploration.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// Odds in %, empty where they are not known.
[[nodiscard]] inline Cell odds_cell(const std::optional<double>& odds_in_time) {
  return odds_in_time ? Cell(100.0 * *odds_in_time) : Cell();
}

/// The one clock of a plan, or how many it has.
[[nodiscard]] std::string clocks_text(const ClockGrid& grid, std::span<const ClockId> clocks);

/// The solver's status, or "limit not reached": no clock keeps the power limit, so that the plan is
/// not the best within it.
[[nodiscard]] std::string status_text(SolveStatus status, std::span<const Mark> marks);

/// Changes of clock a second.
[[nodiscard]] double switches_per_s(const Totals& total);

/// Where people see a plan with its changes of clock counted: beside it in its row, or apart, in
/// counted_table(), where the row has no room.
enum class Counted { beside, apart };

/// One row per plan, the default clocks first; change against the default clocks in percent.
[[nodiscard]] OutputTable plans_table(const Exploration& found, Counted where = Counted::beside);

/// One row per plan that took changes of clock to be free: how many it has, and what is left of its
/// saving.
[[nodiscard]] OutputTable counted_table(const Exploration& found);

/// The prices of goal `cost`, if it was asked for.
[[nodiscard]] std::optional<Prices> asked_prices(const Exploration& found);

/// One row per plan and mark, with its reason.
[[nodiscard]] OutputTable notes_table(const Exploration& found);

/// One row per plan and pass.
[[nodiscard]] OutputTable passes_table(const Exploration& found);

/// One row per plan and kernel, with the clock chosen.
[[nodiscard]] OutputTable kernels_table(const Trace& trace, const Exploration& found);

/// One row per segment that a plan of granularity 'segment' chose: launches in a row that share a
/// clock, with the number of times that their block repeats them.
[[nodiscard]] OutputTable segments_table(const Trace& trace, const Exploration& found);

}  // namespace rubato
