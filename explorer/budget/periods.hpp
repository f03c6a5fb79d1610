#pragma once
// Jobs over a day: periods with their own prices and limits, or one limit on the sum of all.

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/budget/budget.hpp"

namespace rubato {

/// A part of the day.
struct Period {
  double hours = 1.0, price_per_kwh = 0.0, kg_per_kwh = 0.0;
  double most_w = std::numeric_limits<double>::infinity();
};

/// Reads a CSV of periods: hours, price_per_kwh, kg_per_kwh, watts, each of which may be left out.
/// @param others  what a period has where the file does not say, and the most that it may draw
/// @throws IoError; DataError naming the cell, or if there is no row
[[nodiscard]] std::vector<Period> read_periods(const std::string& file, const Period& others);

struct PlannedPeriod {
  Period period;
  BudgetQuestion question;
  BudgetAnswer answer;
  double begin_h = 0.0;
};

/// A limit on a sum over the periods.
struct TotalLimit {
  double most = 0.0;      ///< > 0
  std::string_view unit;  ///< "kWh"; "kg" of CO2e; empty: the price of energy

  [[nodiscard]] double per_kwh(const Period& period) const {
    return unit == "kWh" ? 1.0 : unit == "kg" ? period.kg_per_kwh : period.price_per_kwh;
  }
};

/// Answers the questions of all periods at once for the most worth within the limit, as one
/// knapsack: each job of each period is a row of it.
/// @param periods  at least one
/// @return what all of them come to: power_w is the sum in the unit of the limit. If not found, the
///         answers stay as they are, and it is the least sum that there is
/// @throws UsageError if a period has a limit of power too
[[nodiscard]] BudgetAnswer plan_periods(std::span<const BudgetJob> jobs, const TotalLimit& total,
                                        std::vector<PlannedPeriod>& periods,
                                        const RunContext& context = {});

}  // namespace rubato
