#pragma once
// Explorations of captured runs as tables.

#include <optional>
#include <string>
#include <string_view>

#include "explorer/results/capture_rows.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// The clock of a plan, or how many.
[[nodiscard]] std::string plan_clocks_text(const GraphExploration& found,
                                           const GraphPlanResult& result);

/// The prices that plans of least cost were asked with; nothing if none were.
[[nodiscard]] std::optional<Prices> asked_prices(const GraphExploration& found);

/// The goal, called as for traces: "strict_waste", "relaxed_waste", "edp".
[[nodiscard]] std::string goal_name(const GraphPlanOutcome& outcome);

/// Whether plans are late as they are played: "kept", "missed", "-" where they have no deadline.
/// @param outcome  counted
[[nodiscard]] std::string_view deadline_text(const GraphPlanOutcome& outcome);

/// Whether a plan whose changes were counted needs no such mark: columns behind "played" say it.
[[nodiscard]] bool is_said_by_playing(const Mark& mark);

[[nodiscard]] OutputTable captured_plans_table(const GraphExploration& found);
[[nodiscard]] OutputTable captured_kernels_table(const GraphExploration& found);
/// @param for_people  only the collectives in which ranks waited longest
[[nodiscard]] OutputTable collectives_table(const GraphExploration& found, bool for_people);
/// Which rank came last, and how often; empty without collectives.
[[nodiscard]] std::string late_ranks_note(const GraphExploration& found);

[[nodiscard]] OutputTable captured_run_table(const GraphRequest& request,
                                             const GraphExploration& found);

/// Numbers of SMs that were tried, as captured first; empty if none were asked for.
[[nodiscard]] OutputTable comm_sms_table(const GraphExploration& found);
/// ", collectives beside compute on 8 SMs", or nothing.
[[nodiscard]] std::string comm_sms_text(const GraphPlanOutcome& outcome);
/// What was moved, how to set it and what that rests on; empty if nothing was asked for.
[[nodiscard]] std::string comm_sms_note(const GraphExploration& found);

}  // namespace rubato
