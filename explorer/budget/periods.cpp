#include "explorer/budget/periods.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"

namespace rubato {

std::vector<Period> read_periods(const std::string& file, const Period& others) {
  const CsvTable table = CsvTable::read(file);
  table.expect_columns({}, {"hours", "price_per_kwh", "kg_per_kwh", "watts"});
  std::vector<Period> periods;
  ErrorList errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto number = [&](std::string_view name, Range range, double fallback) {
      const auto column = table.find_column(name);
      return column ? table.optional_number(row, *column, range, errors).value_or(fallback)
                    : fallback;
    };
    periods.push_back(
        {.hours = number("hours", Range::positive, others.hours),
         .price_per_kwh = number("price_per_kwh", Range::any, others.price_per_kwh),
         .kg_per_kwh = number("kg_per_kwh", Range::non_negative, others.kg_per_kwh),
         .most_w = std::min(others.most_w, number("watts", Range::non_negative, others.most_w))});
  }
  errors.throw_if_any({.in = file, .hint = {}});
  if (periods.empty()) throw DataError(fmt::format("{}: no row", file));
  return periods;
}

BudgetAnswer plan_periods(std::span<const BudgetJob> jobs, const TotalLimit& total,
                          std::vector<PlannedPeriod>& periods, const RunContext& context) {
  constexpr double w_per_kw = 1000.0;
  std::vector<BudgetJob> rows;
  for (const PlannedPeriod& one : periods) {
    if (std::isfinite(one.period.most_w))
      throw UsageError("a limit over all periods goes with none of power in each",
                       {.in = {}, .hint = "leave out the column watts: nothing searches for both"});
    for (BudgetJob job : jobs) {
      job.times = one.period.hours;
      job.limit_per_w = total.per_kwh(one.period) / w_per_kw;
      job.price_per_kwh = one.question.price_per_kwh;
      rows.push_back(std::move(job));
    }
  }
  BudgetQuestion question = periods.front().question;
  question.most_w = total.most;
  BudgetAnswer all = plan_budget(rows, question, context);
  if (!all.found) {
    question.goal = BudgetGoal::least_power;
    all = plan_budget(rows, question, context);
    all.found = false;
    return all;
  }
  const double gap = (all.bound_per_s - all.value_per_s) / std::abs(all.value_per_s);
  auto choice = all.option_of_job.begin();
  for (PlannedPeriod& one : periods) {
    const auto end = choice + static_cast<std::ptrdiff_t>(jobs.size());
    one.answer = budget_of(jobs, one.question, std::vector<std::size_t>(choice, end));
    one.answer.proven = all.proven;
    one.answer.bound_per_s = one.answer.value_per_s + gap * std::abs(one.answer.value_per_s);
    one.answer.odds = all.odds;
    choice = end;
  }
  return all;
}

}  // namespace rubato
