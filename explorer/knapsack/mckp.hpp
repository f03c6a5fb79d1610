#pragma once
// The multiple-choice knapsack problem: one item from every row, least total
// cost, total weight within a budget. Both the search for clocks (cost energy,
// weight time) and its dual (cost time, weight energy) have this form.

#include <cstdint>
#include <span>
#include <vector>

#include "common/run_context.hpp"

namespace rubato {

/// Rows of items with real cost and weight of any sign, row-major [rows x items].
struct MckpProblem {
  std::size_t rows = 0;
  std::size_t items = 0;
  std::span<const double> cost;
  std::span<const double> weight;
  double budget = 0.0;
};

/// `proven`: no choice within the budget costs less, up to the last digits of the
/// two sums (CoreSearch says how many); else `lower_bound` says how far from the
/// optimum the choice can be at most.
struct MckpResult {
  bool feasible = false;
  bool proven = false;
  std::vector<std::size_t> choice;  ///< item of each row; empty if infeasible
  double cost = 0.0;                ///< compensated sums in row order
  double weight = 0.0;              ///< <= budget, as summed
  double lower_bound = 0.0;
  std::uint64_t states = 0;  ///< partial choices looked at
};

/// A move of one row to the next item of its lower hull.
struct HullStep {
  std::uint32_t row = 0;
  std::uint32_t item = 0;      ///< item after the step
  double weight_change = 0.0;  ///< > 0
  double cost_change = 0.0;    ///< < 0

  /// Cost saved per weight spent.
  [[nodiscard]] double saving() const noexcept { return -cost_change / weight_change; }
};

/// Every row at its least weight, then steps by falling saving: after each step
/// the choice is optimal for the weight it uses. This is the whole supported
/// front, and the greedy solution of the linear relaxation.
struct HullPath {
  std::vector<std::size_t> start;  ///< item of each row
  std::vector<HullStep> steps;
};

/// Rows are shared among threads; the result does not depend on their number. Steps of equal saving
/// go by row.
[[nodiscard]] HullPath hull_path(const MckpProblem& problem);

/// Exact: linear relaxation (mckp_linear.hpp), then a search among the items
/// whose reduced cost fits into the gap that is left (mckp_core.hpp). The search
/// starts with a small gap, since the optimum is most often far closer to the
/// bound than a greedy choice: what is found within a gap is optimal.
/// @param max_states  gives up the proof beyond about this many partial choices
/// Limits: many rows of like items with unlike sums make the search exponential; it
/// then ends unproven, with a bound. Below 2^32 rows and items.
/// Source of the scheme: Pisinger, Eur. J. Oper. Res. 83(2), 1995 (core of the multiple-choice
/// knapsack); Horowitz and Sahni, J. ACM 21(2), 1974 (two lists).
[[nodiscard]] MckpResult solve_mckp(const MckpProblem& problem, const RunContext& context = {},
                                    std::uint64_t max_states = 50'000'000);

}  // namespace rubato
