#include "models/linear/dense_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(DenseLoops, AllInstructionSetsGiveTheSameBits) {
  constexpr std::size_t stride = 3 * dense_padding;
  std::vector<double> a(5 * stride), row(stride, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<double>(i + 1));
  std::copy_n(a.begin(), dense_block, row.begin() + dense_block);
  std::copy_n(a.begin(), dense_block, row.begin() + 4 * dense_block);
  const std::vector<std::size_t> blocks{1, 4};
  std::vector<double> first_sum, first_column, first_powers;
  for (const DenseLoops& loops : dense_loops()) {
    std::vector<double> sum(stride * stride, 0.1), column(stride, 0.3);
    loops.add_square(row.data(), blocks, stride, sum.data());
    loops.subtract(a.data(), stride, a.data() + 7, 5, dense_padding, stride, column.data());
    std::vector<double> powers = a;
    loops.exp2(powers.size(), powers.data());
    if (first_sum.empty()) {
      first_powers = powers;
      first_sum = sum;
      first_column = column;
    }
    EXPECT_EQ(sum, first_sum) << loops.name;
    EXPECT_EQ(column, first_column) << loops.name;
    EXPECT_EQ(powers, first_powers) << loops.name;
  }
  EXPECT_EQ(first_sum[dense_block * stride + 4 * dense_block], 0.1 + a[0] * a[0]);
  EXPECT_EQ(first_sum[2 * dense_block * stride + 4 * dense_block], 0.1);  // a block that is zero
  double expected = 0.0;
  for (std::size_t j = 0; j < 5; ++j) expected += a[j * stride + 20] * a[7 + j];
  EXPECT_EQ(first_column[20], 0.3 - expected);
  EXPECT_EQ(first_column[dense_padding - 1], 0.3);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_DOUBLE_EQ(first_powers[i], std::exp2(a[i]));
}

}  // namespace
}  // namespace rubato
