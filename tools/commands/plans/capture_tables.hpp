#pragma once
// Explorations of captured runs as tables besides that of plans.

#include <optional>
#include <string>

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

[[nodiscard]] OutputTable captured_kernels_table(const GraphExploration& found);
/// Those in which ranks waited longest first.
[[nodiscard]] OutputTable collectives_table(const GraphExploration& found);
[[nodiscard]] OutputTable captured_run_table(const GraphRequest& request,
                                             const GraphExploration& found);
/// Numbers of SMs that were tried, as captured first; empty if none were asked for.
[[nodiscard]] OutputTable comm_sms_table(const GraphExploration& found);

}  // namespace rubato
