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

/// `proven`: the choice is optimal up to the rounding of double sums (1e-12 of the
/// cost); else `lower_bound` says how far from it it can be at most.
struct MckpResult {
  bool feasible = false;
  bool proven = false;
  std::vector<std::size_t> choice;  ///< item of each row; empty if infeasible
  double cost = 0.0;                ///< compensated sums in row order
  double weight = 0.0;
  double lower_bound = 0.0;
  std::uint64_t states = 0;  ///< partial choices looked at
};

/// A move of one row to the next item of its lower hull.
struct HullStep {
  std::size_t row = 0;
  std::size_t item = 0;        ///< item after the step
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

/// O(rows x items x log(rows x items)).
[[nodiscard]] HullPath hull_path(const MckpProblem& problem);

/// Lagrangian bound at the critical multiplier, then a dynamic program over the
/// items whose reduced cost does not exceed the gap between bound and greedy choice.
/// @param max_states  gives up the proof beyond this many partial choices
/// Source of the scheme: Pisinger, Eur. J. Oper. Res. 83(2), 1995 (core of the multiple-choice
/// knapsack).
[[nodiscard]] MckpResult solve_mckp(const MckpProblem& problem, const RunContext& context = {},
                                    std::uint64_t max_states = 50'000'000);

}  // namespace rubato
