// What many numbers have in common.

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "common/statistics.hpp"

namespace rubato {
namespace {

// All ways in which n draws can lie below or above the median, each as likely.
double chance_of_at_most(std::size_t below, std::size_t n) {
  std::size_t ways = 0;
  for (std::uint32_t draws = 0; draws < std::uint32_t{1} << n; ++draws) {
    if (static_cast<std::size_t>(std::popcount(draws)) <= below) ++ways;
  }
  return static_cast<double>(ways) / static_cast<double>(std::uint32_t{1} << n);
}

TEST(Statistics, MedianRanksAreTheBinomials) {
  for (std::size_t n = 1; n < 5; ++n) {
    EXPECT_FALSE(median_rank(n)) << n;
    EXPECT_GT(chance_of_at_most(0, n), 0.05);
  }
  for (std::size_t n = 5; n <= 18; ++n) {
    const std::optional<std::size_t> rank = median_rank(n);
    ASSERT_TRUE(rank) << n;
    EXPECT_LE(chance_of_at_most(*rank, n), 0.05) << n;
    EXPECT_GT(chance_of_at_most(*rank + 1, n), 0.05) << n;
  }
  EXPECT_EQ(median_rank(100), 41U);  // P(<= 41) = 4.4 %, P(<= 42) = 6.7 %
}

}  // namespace
}  // namespace rubato
