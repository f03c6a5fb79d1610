#pragma once
// Rows of a knapsack, shared among threads.

#include <algorithm>
#include <cstddef>

#include "common/algorithms/parallel.hpp"

namespace rubato {

/// Blocks of consecutive rows, about equally many in each, with cells enough to pay for a task of
/// their own. The blocks depend on the size of the problem only, never on the number of threads.
class RowBlocks {
 public:
  RowBlocks(std::size_t rows, std::size_t items) : rows_(rows) {
    constexpr std::size_t block_cells = std::size_t{1} << 16;
    const std::size_t wanted = rows * items / block_cells + 1;
    length_ = std::max<std::size_t>((rows + wanted - 1) / wanted, 1);
    count_ = std::max<std::size_t>((rows + length_ - 1) / length_, 1);
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  /// Calls work(block, first row, row after the last) for every block, several at a time.
  template <class Work>
  void for_each(const Work& work) const {
    const auto of = [&](std::size_t block) {
      work(block, block * length_, std::min((block + 1) * length_, rows_));
    };
    if (count_ == 1) {
      of(0);
    } else {
      parallel_for(count_, of);
    }
  }

 private:
  std::size_t rows_, length_, count_;
};

}  // namespace rubato
