#pragma once
// The answers of an exploration as a table for programs: what v_answer has of a stored one.

#include <functional>
#include <string>
#include <utility>

#include "explorer/results/answers.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// One row per want. plan: position among the plans; empty where the default clocks are the answer.
/// @param changes  of energy and time as applied, in percent
template <class Plan>
[[nodiscard]] OutputTable answers_table(
    const Answers<Plan>& answers, const std::string& default_clock,
    const std::function<std::string(const Plan&)>& set_to,
    const std::function<std::pair<double, double>(const Plan&)>& changes) {
  OutputTable table({{"want"},
                     {"is_headline"},
                     {"plan"},
                     {"granularity"},
                     {"set_to"},
                     {"energy_change_pct"},
                     {"time_change_pct"}});
  const PlanAnswer* headline = answers.headline();
  for (const PlanAnswer& answer : answers.answers) {
    const Plan* plan = answers.plan(answer);
    if (plan == nullptr && !answer.keeps_default) continue;
    const auto [energy_pct, time_pct] = plan == nullptr ? std::pair(0.0, 0.0) : changes(*plan);
    table.add_row(
        {answer.want, std::int64_t{&answer == headline},
         plan == nullptr ? Cell() : Cell(static_cast<std::int64_t>(*answer.plan)),
         plan == nullptr ? std::string("iteration") : answers.contenders[*answer.plan].granularity,
         plan == nullptr ? default_clock : set_to(*plan), energy_pct, time_pct});
  }
  return table;
}

}  // namespace rubato
