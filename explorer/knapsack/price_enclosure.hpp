#pragma once
// Two prices of weight, close to each other, between which the Lagrange multiplier of a knapsack's
// budget lies: the price at which its linear relaxation ends.

#include <cstdint>
#include <vector>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

/// An item of a row.
struct Pick {
  double cost = 0.0, weight = 0.0;
  std::uint32_t item = 0;
};

/// The choice of least cost + price x weight: of each row one item.
struct Side {
  double price = 0.0;
  std::vector<Pick> picks;          ///< of each row
  double cost = 0.0, weight = 0.0;  ///< compensated sums in row order
};

/// `light`: at the higher price, a choice that fits the budget. `heavy`: at the lower price, one
/// that does not. There are two exceptions: if no choice fits, and if that of least cost does.
/// Then `light` is the choice of least weight (price infinity), `heavy` that of least cost (0).
struct Enclosure {
  Side light, heavy;
};

/// Passes over the table: one finds the choices of least weight and least cost, each further one
/// the choice at one price. A sample of the rows and items gives the first price of a large
/// problem. A pass takes O(rows x items); most often there are three or four.
[[nodiscard]] Enclosure enclose_price(const MckpProblem& problem);

/// Every row's steps along its lower hull from the light to the heavy item, row by row, by rising
/// weight.
[[nodiscard]] std::vector<HullStep> steps_between(const MckpProblem& problem,
                                                  const Enclosure& enclosure);

}  // namespace rubato
