#pragma once
// The linear relaxation of the multiple-choice knapsack, without the hulls of all rows.

#include <cstddef>
#include <vector>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

/// A choice that is optimal at a price of weight, and ends where the budget does.
struct LinearSolution {
  bool feasible = false;              ///< else nothing below is set
  std::vector<std::size_t> base{};    ///< within the budget
  double price = 0.0;                 ///< 0 if the least cost fits; the base is optimal at it
  double room = 0.0;                  ///< budget less the weight of the base
  std::vector<std::size_t> greedy{};  ///< base and some later steps as far as they fit
};

/// Encloses the price (price_enclosure.hpp); only between its two ends are steps of the rows' hulls
/// made, and put in order.
/// Source: Dyer, Math. Programming 29(1), 1984 and Zemel, Inf. Proc. Letters 18(3), 1984, for the
/// search of the price; the enclosure by chords is Kelley's cutting plane method in one dimension.
[[nodiscard]] LinearSolution solve_linear(const MckpProblem& problem);

/// Whether the compensated sum of its weights, in row order, is within the budget.
[[nodiscard]] bool fits(const MckpProblem& problem, const std::vector<std::size_t>& choice);

}  // namespace rubato
