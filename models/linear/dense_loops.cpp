#include "models/linear/dense_loops.hpp"

#include "common/vectors/instruction_sets.hpp"

namespace rubato {

namespace {

// As many vectors as hold `numbers`.
template <class V, std::size_t numbers>
struct Wide {
  using Type = lanes::Pair<typename Wide<V, numbers / 2>::Type>;
};
template <class V, std::size_t numbers>
requires(lanes::count<V> == numbers) struct Wide<V, numbers> {
  using Type = V;
};

template <class V>
RUBATO_LANES void add_square(const double* row, std::span<const std::size_t> blocks,
                             std::size_t stride, double* sum) {
  using Block = typename Wide<V, dense_block>::Type;
  for (std::size_t own = 0; own < blocks.size(); ++own) {
    const std::size_t first = blocks[own] * dense_block;
    for (std::size_t c = first; c < first + dense_block; ++c) {
      if (row[c] == 0.0) continue;
      double* to = sum + c * stride;
      for (std::size_t b = own; b < blocks.size(); ++b) {
        const std::size_t at = blocks[b] * dense_block;
        lanes::store(lanes::load<Block>(to + at) + row[c] * lanes::load<Block>(row + at), to + at);
      }
    }
  }
}

template <class Numbers>
RUBATO_LANES void subtract_at(const double* a, std::size_t stride, const double* factor,
                              std::size_t count, double* column) {
  Numbers sum = lanes::all<Numbers>(0.0);
  for (std::size_t j = 0; j < count; ++j)
    sum = sum + lanes::load<Numbers>(a + j * stride) * factor[j];
  lanes::store(lanes::load<Numbers>(column) - sum, column);
}

template <class V>
RUBATO_LANES void subtract(const double* a, std::size_t stride, const double* factor,
                           std::size_t count, std::size_t from, std::size_t to, double* column) {
  using Few = typename Wide<V, dense_padding>::Type;
  constexpr std::size_t streams = 4;  // additions wait for their own results
  std::size_t i = from;
  if constexpr (lanes::count<V> * streams > dense_padding) {
    using Many = lanes::Pair<Few>;
    for (; i + 2 * dense_padding <= to; i += 2 * dense_padding)
      subtract_at<Many>(a + i, stride, factor, count, column + i);
  }
  for (; i < to; i += dense_padding) subtract_at<Few>(a + i, stride, factor, count, column + i);
}

template <class V>
RUBATO_LANES void exp2_of_all(std::size_t count, double* x) {
  using Few = typename Wide<V, dense_padding>::Type;
  for (std::size_t i = 0; i < count; i += dense_padding)
    lanes::store(lanes::exp2(lanes::load<Few>(x + i)), x + i);
}

}  // namespace

std::span<const DenseLoops> dense_loops() {
  return lanes::runnable([]<class Set>(Set) {
    using V = typename Set::Vector;
    return DenseLoops{.name = Set::name,
                      .add_square = Set::template compiled<add_square<V>>,
                      .subtract = Set::template compiled<subtract<V>>,
                      .exp2 = Set::template compiled<exp2_of_all<V>>};
  });
}

}  // namespace rubato
