#pragma once
// An exploration as tables for the terminal and for programs.

#include <string>

#include "explorer/exploration.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// One row per plan, the default clocks first; change against the default clocks in percent.
[[nodiscard]] OutputTable plans_table(const Exploration& found);

/// One row per plan and pass.
[[nodiscard]] OutputTable passes_table(const Exploration& found);

/// One row per plan and kernel, with the clock chosen.
[[nodiscard]] OutputTable kernels_table(const Trace& trace, const Exploration& found);

/// One row per segment that a plan of granularity 'auto' chose: launches in a row that share a
/// clock, as often as their block repeats them.
[[nodiscard]] OutputTable segments_table(const Trace& trace, const Exploration& found);

/// What a reader must know beside the numbers: baseline, coverage, model status.
[[nodiscard]] std::string exploration_notes(const ExplorationInput& input,
                                            const Exploration& found);

/// 100 x (value / reference - 1).
[[nodiscard]] double change_pct(double value, double reference);

}  // namespace rubato
