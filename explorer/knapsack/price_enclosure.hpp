#pragma once
// Where the price of weight lies at which the linear relaxation of a knapsack ends.

#include <cstdint>
#include <vector>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

/// An item of a row.
struct Pick {
  double cost = 0.0, weight = 0.0;
  std::uint32_t item = 0;
};

/// The choice of least cost + price x weight.
struct Side {
  double price = 0.0;
  std::vector<Pick> picks;          ///< of each row
  double cost = 0.0, weight = 0.0;  ///< compensated sums in row order
};

/// Two prices, with a choice that fits at the higher one and one that does not at the lower; but
/// the choice of least weight if none fits, and that of least cost if it does.
struct Enclosure {
  Side light, heavy;
};

/// By passes over the table, each at one price, from a guess by a sample of the rows and items.
/// O(rows x items) a pass, and most often three or four passes.
[[nodiscard]] Enclosure enclose_price(const MckpProblem& problem);

/// Every row's steps along its lower hull from the light to the heavy item, row by row, by rising
/// weight.
[[nodiscard]] std::vector<HullStep> steps_between(const MckpProblem& problem,
                                                  const Enclosure& enclosure);

}  // namespace rubato
