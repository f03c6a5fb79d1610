// Every instruction set's loops against their definition, ties and short rows included.

#include "explorer/knapsack/row_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rubato {
namespace {

struct Row {
  std::vector<double> cost, weight;
  std::uint32_t reference = 0;

  [[nodiscard]] RowItems items() const { return {cost.data(), weight.data(), cost.size()}; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(cost.size()); }
  /// As the loops add it up.
  [[nodiscard]] double above(std::uint32_t i, double price) const {
    return (cost[i] - cost[reference]) + price * (weight[i] - weight[reference]);
  }
};

// Whole numbers, so that sums are exact: many ties up to 4, few up to 1000.
Row arbitrary_row() {
  const auto size = *rc::gen::inRange<std::uint32_t>(1, 40);
  const int largest = *rc::gen::element(4, 1000);
  Row row;
  for (std::uint32_t i = 0; i < size; ++i) {
    row.cost.push_back(*rc::gen::inRange(-largest, largest));
    row.weight.push_back(*rc::gen::inRange(-largest, largest));
  }
  row.reference = *rc::gen::inRange<std::uint32_t>(0, size);
  return row;
}

double arbitrary_price() { return 0.25 * *rc::gen::inRange(0, 20); }

RC_GTEST_PROP(RowScan, EndsAreLeastInBothOrders, ()) {
  const Row row = arbitrary_row();
  const auto first_of = [&](const std::vector<double>& x, const std::vector<double>& y) {
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < row.size(); ++i) {
      if (std::pair(x[i], y[i]) < std::pair(x[best], y[best])) best = i;
    }
    return best;
  };
  for (const RowScan& scan : row_scans()) {
    const RowEnds ends = scan.ends(row.items());
    RC_TAG(std::string(scan.name));
    RC_ASSERT(ends.lightest == first_of(row.weight, row.cost));
    RC_ASSERT(ends.cheapest == first_of(row.cost, row.weight));
  }
}

RC_GTEST_PROP(RowScan, LeastIsTheFirstOfTheLeast, ()) {
  const Row row = arbitrary_row();
  const double price = arbitrary_price();
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < row.size(); ++i) {
    if (row.above(i, price) < row.above(best, price)) best = i;
  }
  for (const RowScan& scan : row_scans())
    RC_ASSERT(scan.least(row.items(), row.reference, price) == best);
}

RC_GTEST_PROP(RowScan, CheapestStaysWithinTheRoom, ()) {
  const Row row = arbitrary_row();
  const double room = *rc::gen::inRange(0, 100);
  std::uint32_t best = row.reference;
  bool found = false;
  for (std::uint32_t i = 0; i < row.size(); ++i) {
    if (row.weight[i] - row.weight[row.reference] > room) continue;
    if (!found || row.cost[i] < row.cost[best]) best = i;
    found = true;
  }
  for (const RowScan& scan : row_scans()) {
    const std::uint32_t item = scan.cheapest(row.items(), row.reference, room);
    RC_ASSERT(row.weight[item] - row.weight[row.reference] <= room);
    RC_ASSERT(row.cost[item] == row.cost[best]);
  }
}

RC_GTEST_PROP(RowScan, LeastChangeLooksAtWhatIsLighterOrCheaper, ()) {
  const Row row = arbitrary_row();
  const double price = arbitrary_price();
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < row.size(); ++i) {
    if (row.weight[i] < row.weight[row.reference] || row.cost[i] < row.cost[row.reference])
      least = std::min(least, row.above(i, price));
  }
  for (const RowScan& scan : row_scans())
    RC_ASSERT(scan.least_change(row.items(), row.reference, price) == least);
}

RC_GTEST_PROP(RowScan, WithinFindsAllInOrder, ()) {
  const Row row = arbitrary_row();
  const double price = arbitrary_price(), gap = *rc::gen::inRange(0, 100);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < row.size(); ++i) {
    if (row.above(i, price) <= gap) expected.push_back(i);
  }
  for (const RowScan& scan : row_scans()) {
    std::vector<std::uint32_t> found(row.cost.size() + 1);
    found.resize(scan.within(row.items(), row.reference, price, gap, found.data()));
    RC_ASSERT(found == expected);
  }
}

TEST(RowScan, BaselineRunsEverywhere) {
  ASSERT_FALSE(row_scans().empty());
  EXPECT_EQ(row_scans().front().name, "baseline");
}

}  // namespace
}  // namespace rubato
