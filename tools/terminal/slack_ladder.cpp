#include "tools/terminal/slack_ladder.hpp"

#include <functional>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

OutputTable wide_table(std::span<const SlackStep> steps, std::string_view title,
                       const std::function<double(const Cost&)>& change) {
  std::vector<Column> columns{{"granularity"}};
  for (const double slack_frac : ladder_slacks_frac) {
    const double slack_pct = percent * slack_frac;
    columns.push_back(
        {fmt::format("slack_{}_pct", slack_pct), fmt::format("{} {:.1f} %", title, slack_pct), 2});
  }
  OutputTable table(std::move(columns));
  // Steps of a granularity are neighbours. Where the search was ended, only the first are there.
  std::vector<Cell> row;
  const auto add = [&] {
    if (row.empty()) return;
    row.resize(ladder_slacks_frac.size() + 1);
    table.add_row(std::exchange(row, {}));
  };
  for (const SlackStep& step : steps) {
    if (step.slack_frac == ladder_slacks_frac.front()) {
      add();
      row.emplace_back(std::string(name_of(step.granularity)));
    }
    row.push_back(step.least ? Cell(change(*step.least)) : Cell());
  }
  add();
  return table;
}

}  // namespace

OutputTable ladder_table(std::span<const SlackStep> steps, const Totals& baseline) {
  return wide_table(steps, "slack", [&](const Cost& least) {
    return change_pct(least.energy_j, baseline.energy_j);
  });
}

OutputTable cost_ladder_table(std::span<const SlackStep> steps, const Totals& baseline,
                              const Prices& prices) {
  return wide_table(steps, "cost at", [&](const Cost& least) {
    return change_pct(prices.of(least.time_s, least.energy_j),
                      prices.of(baseline.time_s, baseline.energy_j));
  });
}

OutputTable slack_steps_table(std::span<const SlackStep> steps, const Totals& baseline,
                              const std::optional<Prices>& prices) {
  OutputTable table({{"granularity"},
                     {"slack_pct"},
                     {"time_change_pct"},
                     {"energy_change_pct"},
                     {"cost_change_pct"}});
  for (const SlackStep& step : steps) {
    std::vector<Cell> row{std::string(name_of(step.granularity)), percent * step.slack_frac};
    if (step.least) {
      const Cost& least = *step.least;
      row.insert(row.end(), {change_pct(least.time_s, baseline.time_s),
                             change_pct(least.energy_j, baseline.energy_j)});
      if (prices)
        row.emplace_back(change_pct(prices->of(least.time_s, least.energy_j),
                                    prices->of(baseline.time_s, baseline.energy_j)));
    }
    row.resize(5);
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace rubato
