#pragma once
// What a little more time is worth, as tables.

#include <span>

#include "explorer/slack_ladder.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// For people: a row per granularity, a column per slack, the least energy against the default
/// clocks. No rows without steps.
[[nodiscard]] OutputTable ladder_table(std::span<const SlackStep> steps, const Totals& baseline);

/// The same plans in money: their change of cost. Where it rises from one slack to the next, more
/// slack is not worth its time.
[[nodiscard]] OutputTable cost_ladder_table(std::span<const SlackStep> steps,
                                            const Totals& baseline, const Prices& prices);

/// For programs: a row per step. @param prices  of goal `cost`, if it was asked for
[[nodiscard]] OutputTable slack_steps_table(std::span<const SlackStep> steps,
                                            const Totals& baseline,
                                            const std::optional<Prices>& prices);

}  // namespace rubato
