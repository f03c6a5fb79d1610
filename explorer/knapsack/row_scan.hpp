#pragma once
// Loops over the items of one row of a knapsack, compiled once for each instruction set that pays.
// All of them give the same answers: docs/decisions/0012-simd.md.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

/// The items of one row, shape [count] each, count > 0.
struct RowItems {
  const double* cost;
  const double* weight;
  std::size_t count;
};

[[nodiscard]] inline RowItems items_of(const MckpProblem& p, std::size_t row) {
  return {p.cost.data() + row * p.items, p.weight.data() + row * p.items, p.items};
}

/// The two ends of a row's Pareto front.
struct RowEnds {
  std::uint32_t lightest;  ///< least weight, of several the least cost, then the first
  std::uint32_t cheapest;  ///< least cost, of several the least weight, then the first
};

/// The loops for one instruction set.
struct RowScan {
  std::string_view name;  ///< "avx512", "avx2", "baseline"

  RowEnds (*ends)(const RowItems& row);

  /// The item whose cost + price x weight is least, of several the first. Sums are computed as
  /// differences from those of the item `reference`, so that they keep their digits near it.
  std::uint32_t (*least)(const RowItems& row, std::uint32_t reference, double price);

  /// The cheapest item whose weight exceeds that of `reference` by at most `room` >= 0, of several
  /// the first. If none is cheaper than `reference`, it is one of equal cost.
  std::uint32_t (*cheapest)(const RowItems& row, std::uint32_t reference, double room);

  /// The least reduced cost: by how much cost + price x weight grows at least if an item that is
  /// lighter or cheaper replaces `reference`. Infinity if there is none.
  double (*least_change)(const RowItems& row, std::uint32_t reference, double price);

  /// The items whose cost + price x weight exceeds that of `reference` by at most `gap` and
  /// rounding; `reference` is among them.
  /// @param found  filled in order, room for count + 1
  /// @return how many there are
  std::size_t (*within)(const RowItems& row, std::uint32_t reference, double price, double gap,
                        std::uint32_t* found);
};

/// The loops that this machine can run, those of the slowest instruction set first.
[[nodiscard]] std::span<const RowScan> row_scans();

}  // namespace rubato
