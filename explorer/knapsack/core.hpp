#pragma once
// The exact search of the multiple-choice knapsack in its core: the few rows and items that a
// better choice may differ in. They are told as changes against a base choice, which is optimal
// at some price of weight (Lagrange multiplier).

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/run_context.hpp"

namespace rubato {

/// Change of a row from its base item to another one.
struct CoreItem {
  std::uint32_t item = 0;
  double weight = 0.0;   ///< change, any sign
  double cost = 0.0;     ///< change, any sign
  double reduced = 0.0;  ///< reduced cost: cost + price x weight, >= 0 as the base is optimal
};

/// A row and its items other than the base: items[first .. first + count) of the Core.
struct CoreRow {
  std::uint32_t row = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  double least_reduced = 0.0;  ///< least reduced cost of the row's items
};

/// Rows by rising least_reduced, then by row. No item of a row is dominated: no other one is both
/// as light and as cheap.
struct Core {
  std::vector<CoreRow> rows;
  std::vector<CoreItem> items;
};

/// A row that leaves its base item.
struct CoreMove {
  std::uint32_t row = 0;
  std::uint32_t item = 0;
};

/// What to look for. The excess of a choice is its cost less the bound of the linear relaxation. It
/// equals the sum of the reduced costs of its items plus price x the room that it leaves unused.
struct CoreQuestion {
  double price = 0.0;        ///< > 0
  double room = 0.0;         ///< budget less the base's weight, >= 0
  double room_margin = 0.0;  ///< rounding of `room` and of the sums that decide, >= 0
  double gap = 0.0;          ///< largest excess of interest
  /// Decides choices whose weight is so close to the room that rounding matters: within
  /// room_margin and the rounding to integers.
  std::function<bool(std::span<const CoreMove>)> fits;
  std::uint64_t max_states = 0;  ///< partial choices, after about which the search gives up
};

/// The best choice seen. Its excess may exceed the gap asked for. If `complete`, no choice with an
/// excess up to `excluded` is better.
struct CoreAnswer {
  bool complete = false;
  bool found = false;
  double excess = 0.0;
  /// The least bound on the excess of a partial choice that was cut off, at least the gap asked for
  /// and at most item_gap().
  double excluded = 0.0;
  std::vector<CoreMove> moves;
  std::uint64_t states = 0;  ///< partial choices looked at
};

/// Makes two lists of partial choices, one for each half of the rows. A partial choice is left out
/// if another one dominates it, or if the linear relaxation of its other rows lifts it above the
/// gap. At the end the best pair is taken, one from each list.
///
/// Changes are added as 64-bit integers, in units of at most 2^-59 of the sum of the rows' largest
/// changes. So sums do not depend on their order, and equal sums are seen as equal. The error of a
/// sum of n changes is at most n/2 units; there is none if all changes are multiples of the unit,
/// as integers are.
/// Source: Horowitz and Sahni, J. ACM 21(2), 1974.
class CoreSearch {
 public:
  /// Leaves out items whose reduced cost exceeds `item_gap`.
  /// @param core  has all undominated items up to that; not kept
  CoreSearch(const Core& core, double item_gap);
  ~CoreSearch();
  CoreSearch(const CoreSearch&) = delete;
  CoreSearch& operator=(const CoreSearch&) = delete;

  [[nodiscard]] double item_gap() const noexcept { return item_gap_; }
  /// @param question  its gap is at most item_gap()
  [[nodiscard]] CoreAnswer run(const CoreQuestion& question, const RunContext& context = {}) const;

 private:
  struct Numbers;

  double item_gap_;
  std::unique_ptr<const Numbers> numbers_;
};

}  // namespace rubato
