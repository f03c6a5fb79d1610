#pragma once
// The exact part of the multiple-choice knapsack: a few rows, a few items each,
// told as changes against a base choice that is optimal at some price of weight.

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
  double reduced = 0.0;  ///< cost + price x weight, >= 0 since the base is optimal at the price
};

/// A row and its items other than the base: items[first .. first + count) of the Core.
struct CoreRow {
  std::uint32_t row = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  double least_reduced = 0.0;  ///< of the row's items
};

/// Rows by rising least_reduced, then by row. Of items none beats another one.
struct Core {
  std::vector<CoreRow> rows;
  std::vector<CoreItem> items;
};

/// A row that leaves its base item.
struct CoreMove {
  std::uint32_t row = 0;
  std::uint32_t item = 0;
};

/// What to look for. The excess of a choice is its cost above the linear bound:
/// the sum of reduced costs plus price x unused room.
struct CoreQuestion {
  double price = 0.0;        ///< > 0
  double room = 0.0;         ///< budget less the base's weight, >= 0
  double room_margin = 0.0;  ///< rounding of `room` and of the sums that decide, >= 0
  double gap = 0.0;          ///< largest excess of interest
  /// Decides choices whose weight is within room_margin of the room.
  std::function<bool(std::span<const CoreMove>)> fits;
  std::uint64_t max_states = 0;
};

/// Best choice seen, which may lie above the gap. If `complete`, no choice with an
/// excess up to `excluded` is better.
struct CoreAnswer {
  bool complete = false;
  bool found = false;
  double excess = 0.0;
  double excluded = 0.0;  ///< from its gap to item_gap: the least bound that was cut off
  std::vector<CoreMove> moves;
  std::uint64_t states = 0;
};

/// Two lists of partial choices, one for each half of the rows, without those that
/// are dominated or whose relaxation exceeds the gap; then the best pair.
///
/// Changes are added as 64-bit integers in units of at most 2^-59 of the sum of the
/// rows' largest changes: sums then do not depend on their order, equal sums are
/// seen as equal, and the error of a sum of n changes is n/2 units (none if the
/// changes are multiples of the unit, as integers are).
class CoreSearch {
 public:
  /// Leaves out items whose reduced cost exceeds `item_gap`; all others have to be there.
  /// @param core  not kept
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
