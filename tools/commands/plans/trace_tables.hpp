#pragma once
// An exploration of a trace as tables besides that of plans.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "explorer/exploration.hpp"
#include "explorer/slack_ladder.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// What the times of kernels rest on, by CoefficientSource, as shares of the default time in %.
[[nodiscard]] std::array<double, coefficient_sources> coverage_pct(const Exploration& found);

/// The prices of goal `cost`, if it was asked for.
[[nodiscard]] std::optional<Prices> prices_of(const Exploration& found);

/// What was planned, in one row: version, limits, default clocks, and coverage.
[[nodiscard]] OutputTable run_table(std::string_view trace, const ExplorationInput& input,
                                    const Exploration& found);

/// The least energy of each granularity within slacks: a row each.
[[nodiscard]] OutputTable slack_steps_table(std::span<const SlackStep> steps,
                                            const Totals& baseline,
                                            const std::optional<Prices>& prices);

/// One row per plan and pass.
[[nodiscard]] OutputTable passes_table(const Exploration& found);

/// One row per plan and kernel, with the clock chosen.
[[nodiscard]] OutputTable kernels_table(const Trace& trace, const Exploration& found);

/// One row per segment that a plan of granularity 'segment' chose: launches in a row that share a
/// clock, with the number of times that their block repeats them.
[[nodiscard]] OutputTable segments_table(const Trace& trace, const Exploration& found);

}  // namespace rubato
