#pragma once
// The multiple-choice knapsack problem: take one item from every row, for least total cost, with
// the total weight within a budget. Here a row is a kernel and an item a clock. The search for
// least energy in a time budget (cost energy, weight time) has this form, and so has the search
// for least time in an energy budget.

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

/// `proven`: no choice within the budget costs less, up to the last digits of the two sums
/// (CoreSearch says how many). Otherwise the choice costs at most cost - lower_bound more than the
/// optimum.
struct MckpResult {
  bool feasible = false;
  bool proven = false;
  std::vector<std::size_t> choice;  ///< item of each row; empty if infeasible
  double cost = 0.0;                ///< compensated sums in row order
  double weight = 0.0;              ///< <= budget, as summed
  double lower_bound = 0.0;
  std::uint64_t states = 0;  ///< partial choices looked at
};

/// A move of one row to the next item on its lower convex hull of cost over weight.
struct HullStep {
  std::uint32_t row = 0;
  std::uint32_t item = 0;      ///< item after the step
  double weight_change = 0.0;  ///< > 0
  double cost_change = 0.0;    ///< < 0

  /// Cost saved per weight spent.
  [[nodiscard]] double saving() const noexcept { return -cost_change / weight_change; }
};

/// Every row at its least weight, then steps of single rows by falling saving. After each step the
/// choice is optimal for the weight that it uses. These choices are all supported points of the
/// Pareto front, those on its lower convex hull. Up to a budget, the last step in part, they are
/// the solution of the linear relaxation too.
struct HullPath {
  std::vector<std::size_t> start;  ///< item of each row
  std::vector<HullStep> steps;
};

/// Rows are shared among threads; the result does not depend on the number of threads. Steps of
/// equal saving go by row.
[[nodiscard]] HullPath hull_path(const MckpProblem& problem);

/// Solves the problem exactly. The linear relaxation (linear.hpp) gives a bound and a greedy
/// choice. Then the items whose reduced cost is within the gap between the two are searched
/// (core.hpp). The search starts with a smaller gap, since the optimum is most often far closer to
/// the bound than the greedy choice. The best choice found within a gap is optimal.
/// @param max_states  partial choices, beyond about which it gives up the proof
/// Limits: many rows whose items are alike but not equal make the search exponential; it then ends
/// unproven, with a bound. Below 2^32 rows and items.
/// Source of the scheme: Pisinger, Eur. J. Oper. Res. 83(2), 1995 (core of the multiple-choice
/// knapsack); Horowitz and Sahni, J. ACM 21(2), 1974 (two lists).
[[nodiscard]] MckpResult solve_mckp(const MckpProblem& problem, const RunContext& context = {},
                                    std::uint64_t max_states = 50'000'000);

}  // namespace rubato
