#pragma once
// The linear relaxation of the multiple-choice knapsack: a row may be shared between items. It is
// solved without the whole hulls of the rows.

#include <cstddef>
#include <vector>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

/// The choice just within the budget that is optimal at a price of weight: each row's item then has
/// the least cost + price x weight. The price is the Lagrange multiplier (shadow price) of the
/// budget. Cost of the base less price x room is the lower bound of the relaxation.
struct LinearSolution {
  bool feasible = false;              ///< else nothing below is set
  std::vector<std::size_t> base{};    ///< within the budget
  double price = 0.0;                 ///< cost saved per weight; 0 if the least cost fits
  double room = 0.0;                  ///< budget less the weight of the base
  std::vector<std::size_t> greedy{};  ///< the base with more changes, as far as they fit
};

/// Encloses the price (price_enclosure.hpp). Only between the two ends of that are steps along the
/// rows' lower hulls made, and taken by falling saving.
/// Source: Dyer, Math. Programming 29(1), 1984 and Zemel, Inf. Proc. Letters 18(3), 1984, for the
/// search of the price; the enclosure by chords is Kelley's cutting plane method in one dimension.
[[nodiscard]] LinearSolution solve_linear(const MckpProblem& problem);

/// Whether the compensated sum of the choice's weights, in row order, is within the budget.
[[nodiscard]] bool fits(const MckpProblem& problem, const std::vector<std::size_t>& choice);

}  // namespace rubato
