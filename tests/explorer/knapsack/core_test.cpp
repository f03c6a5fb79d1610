// The search in lists: what it leaves unsorted, and answers of lists that are long enough for it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/knapsack/costs_below.hpp"
#include "explorer/knapsack/mckp.hpp"

namespace rubato {
namespace {

// Numbers that look drawn, the same on every machine.
class Draws {
 public:
  std::int64_t below(std::int64_t end) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(end));
  }

 private:
  std::uint64_t state_ = 1;
};

TEST(CostsBelow, RulesOutNothingThatIsNotDominated) {
  Draws draws;
  for (const std::size_t count : {5U, 16U, 40U, 300U}) {
    std::vector<std::pair<std::int64_t, std::int64_t>> seen;
    CostsBelow costs;
    costs.begin(-500, 500, count);
    std::size_t ruled_out = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t weight = draws.below(1001) - 500, cost = draws.below(50);
      const bool dominated = std::ranges::any_of(
          seen, [&](const auto& other) { return other.first < weight && other.second <= cost; });
      if (!costs.takes(weight, cost)) {
        EXPECT_TRUE(dominated) << weight << ", " << cost;
        ++ruled_out;
      }
      costs.see(weight, cost);
      seen.emplace_back(weight, cost);
      if (i % 7 == 0) costs.settle();
    }
    EXPECT_EQ(costs.useful(), count >= 16);
    if (costs.useful()) {
      EXPECT_GT(ruled_out, count / 4);
    }
    costs.settle();
    const auto [weight, cost] = *std::ranges::min_element(seen);
    EXPECT_TRUE(costs.takes(weight, cost));
    EXPECT_EQ(costs.takes(500, 50), !costs.useful());
  }
}

// By weight: the least cost of the first rows that weighs at most that.
std::int64_t least_cost(const MckpProblem& problem) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max() / 2;
  std::vector<std::int64_t> cost(static_cast<std::size_t>(problem.budget) + 1, 0);
  for (std::size_t row = 0; row < problem.rows; ++row) {
    std::vector<std::int64_t> next(cost.size(), none);
    for (std::size_t at = row * problem.items; at < (row + 1) * problem.items; ++at) {
      const auto weight = static_cast<std::size_t>(problem.weight[at]);
      for (std::size_t w = weight; w < cost.size(); ++w)
        next[w] = std::min(next[w], cost[w - weight] + static_cast<std::int64_t>(problem.cost[at]));
    }
    cost = next;
  }
  return cost.back();
}

TEST(Mckp, LongListsGiveWhatTablesOfAllWeightsGive) {
  constexpr std::size_t rows = 12, items = 8;
  Draws draws;
  std::uint64_t most_states = 0;
  for (int instance = 0; instance < 30; ++instance) {
    std::vector<double> cost, weight;
    for (std::size_t i = 0; i < rows * items; ++i) {
      // Near a line, so that much is nearly as good.
      const std::int64_t w = draws.below(60);
      weight.push_back(static_cast<double>(w));
      cost.push_back(static_cast<double>(200 - 2 * w + draws.below(7)));
    }
    const MckpProblem problem{rows, items, cost, weight, static_cast<double>(250 + instance)};
    const MckpResult found = solve_mckp(problem);
    ASSERT_TRUE(found.proven);
    EXPECT_EQ(found.cost, static_cast<double>(least_cost(problem))) << instance;
    double cost_of_choice = 0.0, weight_of_choice = 0.0;
    for (std::size_t row = 0; row < rows; ++row) {
      cost_of_choice += cost[row * items + found.choice[row]];
      weight_of_choice += weight[row * items + found.choice[row]];
    }
    EXPECT_EQ(cost_of_choice, found.cost);
    EXPECT_LE(weight_of_choice, problem.budget);
    most_states = std::max(most_states, found.states);
  }
  EXPECT_GT(most_states, 1000U);
}

}  // namespace
}  // namespace rubato
