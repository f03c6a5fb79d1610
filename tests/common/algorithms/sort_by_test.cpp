#include "common/algorithms/sort_by.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

struct Row {
  double price = 0.0;
  std::uint32_t count = 0;
  std::string name;

  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> random_rows(std::size_t count) {
  std::mt19937 random(3);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i)
    rows.push_back({static_cast<double>(random() % 7) - 3.0,
                    static_cast<std::uint32_t>(random() % 5), std::to_string(i)});
  return rows;
}

TEST(SortBy, IsTheStableSortOfTheLibrary) {
  for (const std::size_t count : {0U, 1U, 2U, 50U, 500U}) {
    auto rows = random_rows(count), expected = rows;
    sort_by(rows, &Row::price);
    std::ranges::stable_sort(expected, {}, &Row::price);
    EXPECT_EQ(rows, expected);
    sort_down_by(rows, [](const Row& row) { return row.count; });
    std::ranges::stable_sort(expected, std::greater{}, &Row::count);
    EXPECT_EQ(rows, expected);
  }
}

TEST(SortBy, TellsLargeIntegersApart) {
  constexpr std::int64_t large =
      std::numeric_limits<std::int64_t>::max();  // doubles are 1024 apart
  std::vector<std::int64_t> list{large, large - 1, -large, large - 2};
  sort_by(list, std::identity{});
  EXPECT_EQ(list, (std::vector<std::int64_t>{-large, large - 2, large - 1, large}));
}

}  // namespace
}  // namespace rubato
