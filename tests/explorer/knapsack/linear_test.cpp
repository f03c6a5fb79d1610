// The linear relaxation without hulls against the one from the hulls of all rows.

#include "explorer/knapsack/linear.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rubato {
namespace {

struct Sums {
  double cost = 0.0, weight = 0.0;
};

Sums sums_of(const MckpProblem& p, const std::vector<std::size_t>& choice) {
  Sums sums;
  for (std::size_t row = 0; row < p.rows; ++row) {
    sums.cost += p.cost[row * p.items + choice[row]];
    sums.weight += p.weight[row * p.items + choice[row]];
  }
  return sums;
}

// Least cost of the relaxation by its definition: the path's steps, the last one in part.
double bound_by_hulls(const MckpProblem& p) {
  const HullPath path = hull_path(p);
  Sums at = sums_of(p, path.start);
  for (const HullStep& step : path.steps) {
    const double part = std::min((p.budget - at.weight) / step.weight_change, 1.0);
    at.cost += part * step.cost_change;
    at.weight += part * step.weight_change;
    if (part < 1.0) break;
  }
  return at.cost;
}

void expect_same_bound(const MckpProblem& p) {
  const LinearSolution found = solve_linear(p);
  const bool feasible = sums_of(p, hull_path(p).start).weight <= p.budget;
  ASSERT_EQ(found.feasible, feasible);
  if (!feasible) return;
  const Sums base = sums_of(p, found.base), greedy = sums_of(p, found.greedy);
  const double bound = bound_by_hulls(p);
  const double digits = 1e-12 * (std::abs(bound) + std::abs(base.cost));
  EXPECT_LE(base.weight, p.budget);
  EXPECT_LE(greedy.weight, p.budget);
  EXPECT_LE(greedy.cost, base.cost + digits);
  EXPECT_NEAR(found.room, p.budget - base.weight, 1e-12 * std::abs(p.budget));
  EXPECT_NEAR(base.cost - found.price * found.room, bound, digits);
  // The base is optimal at the price, so no item may be priced below it.
  for (std::size_t row = 0; row < p.rows; ++row) {
    const auto at = [&](std::size_t item) {
      return p.cost[row * p.items + item] + found.price * p.weight[row * p.items + item];
    };
    for (std::size_t item = 0; item < p.items; ++item)
      EXPECT_GE(at(item), at(found.base[row]) - 1e-12 * std::abs(at(item))) << row << ' ' << item;
  }
}

RC_GTEST_PROP(LinearRelaxation, HasTheBoundOfTheHulls, ()) {
  const auto rows = *rc::gen::inRange<std::size_t>(1, 8);
  const auto items = *rc::gen::inRange<std::size_t>(1, 20);
  const int largest = *rc::gen::element(4, 1000);
  std::vector<double> cost, weight;
  for (std::size_t i = 0; i < rows * items; ++i) {
    cost.push_back(*rc::gen::inRange(1, largest + 1));
    weight.push_back(*rc::gen::inRange(1, largest + 1));
  }
  const double budget = *rc::gen::inRange(1, largest + 1) * static_cast<double>(rows);
  expect_same_bound({rows, items, cost, weight, budget});
}

// Time and energy against a clock, with noise: heavier rows are slower.
struct Kernels {
  std::vector<double> time_s, energy_j;
  double fastest_s = 0.0;
};

Kernels kernels(std::size_t rows, std::size_t clocks) {
  std::mt19937_64 random(7);
  const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Kernels made;
  for (std::size_t row = 0; row < rows; ++row) {
    const double size_s = std::exp(6.0 * uniform()), core_share = uniform();
    for (std::size_t k = 0; k < clocks; ++k) {
      const double clock = 0.3 + 0.7 * static_cast<double>(k + 1) / static_cast<double>(clocks);
      const double time_s =
          size_s * (core_share / clock + 1.0 - core_share) * (1.0 + 0.01 * uniform());
      made.time_s.push_back(time_s);
      made.energy_j.push_back(time_s * (60.0 + 250.0 * clock * clock * clock));
    }
    made.fastest_s += std::ranges::min(std::span(made.time_s).last(clocks));
  }
  return made;
}

// Large enough for a sample of rows, of items, and of both; several blocks of rows.
TEST(LinearRelaxation, GuessesThePriceOfLargeTables) {
  for (const auto& [rows, items] :
       {std::pair<std::size_t, std::size_t>{46, 762}, {600, 66}, {300, 400}, {64, 16}}) {
    const Kernels made = kernels(rows, items);
    for (const double slack : {1.0 - 1e-9, 1.0 + 1e-6, 1.02, 1.1, 1.5, 10.0}) {
      SCOPED_TRACE(fmt::format("{} x {}, slack {}", rows, items, slack));
      expect_same_bound({rows, items, made.energy_j, made.time_s, slack * made.fastest_s});
    }
  }
}

TEST(LinearRelaxation, OfRowsAllAlike) {
  constexpr std::size_t rows = 1000;
  std::vector<double> cost, weight;
  for (std::size_t row = 0; row < rows; ++row) {
    cost.insert(cost.end(), {4.0, 1.0, 2.0, 5.0});
    weight.insert(weight.end(), {1.0, 4.0, 2.0, 1.0});
  }
  for (const double budget :
       {999.0, 1000.0, 1001.0, 1500.0, 2000.0, 2001.0, 3999.0, 4000.0, 5000.0})
    expect_same_bound({rows, 4, cost, weight, budget});
}

// Where all save the same per weight, a row whose item does not fit leaves room for those behind
// it.
TEST(LinearRelaxation, GreedyTakesAllThatStillFits) {
  constexpr std::size_t rows = 6;
  std::vector<double> cost{10.0, 0.0}, weight{1.0, 11.0};
  for (std::size_t row = 1; row < rows; ++row) {
    cost.insert(cost.end(), {1.0, 0.0});
    weight.insert(weight.end(), {1.0, 2.0});
  }
  const LinearSolution found = solve_linear({rows, 2, cost, weight, 11.0});
  EXPECT_EQ(found.base, std::vector<std::size_t>(rows, 0));
  EXPECT_EQ(found.greedy, (std::vector<std::size_t>{0, 1, 1, 1, 1, 1}));
}

// Items above their row's hull fill the room that its steps leave: here for two of three rows.
TEST(LinearRelaxation, GreedyFillsItsRoomWithItemsAboveTheHull) {
  constexpr std::size_t rows = 3;
  std::vector<double> cost, weight;
  for (std::size_t row = 0; row < rows; ++row) {
    cost.insert(cost.end(), {10.0, 9.0, 0.0});
    weight.insert(weight.end(), {5.0, 7.0, 15.0});
  }
  const LinearSolution found = solve_linear({rows, 3, cost, weight, 19.0});
  EXPECT_EQ(found.base, std::vector<std::size_t>(rows, 0));
  EXPECT_EQ(found.greedy, (std::vector<std::size_t>{1, 1, 0}));
}

}  // namespace
}  // namespace rubato
