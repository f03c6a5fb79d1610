// Bounds of answers whose proof was given up, against all choices of small problems.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/knapsack/linear.hpp"
#include "explorer/knapsack/mckp.hpp"
#include "tests/uniform.hpp"

namespace rubato {
namespace {

double least_cost(const MckpProblem& p) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> choice(p.rows, 0);
  while (true) {
    double cost = 0.0, weight = 0.0;
    for (std::size_t row = 0; row < p.rows; ++row) {
      cost += p.cost[row * p.items + choice[row]];
      weight += p.weight[row * p.items + choice[row]];
    }
    if (weight <= p.budget) best = std::min(best, cost);
    std::size_t row = 0;
    while (row < p.rows && ++choice[row] == p.items) choice[row++] = 0;
    if (row == p.rows) return best;
  }
}

// The linear relaxation from its dual: the largest over all prices of the least cost + price x
// weight of each row, less price x budget. It is concave and bends only where two items of a row
// are worth the same.
double relaxed_cost(const MckpProblem& p) {
  std::vector<double> prices{0.0};
  for (std::size_t row = 0; row < p.rows; ++row) {
    for (std::size_t a = row * p.items; a < (row + 1) * p.items; ++a) {
      for (std::size_t b = row * p.items; b < a; ++b) {
        const double price = (p.cost[a] - p.cost[b]) / (p.weight[b] - p.weight[a]);
        if (p.weight[a] != p.weight[b] && price > 0.0) prices.push_back(price);
      }
    }
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (const double price : prices) {
    double sum = -price * p.budget;
    for (std::size_t row = 0; row < p.rows; ++row) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = row * p.items; i < (row + 1) * p.items; ++i)
        least = std::min(least, p.cost[i] + price * p.weight[i]);
      sum += least;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

RC_GTEST_PROP(MckpBound, LiesBetweenTheRelaxationAndTheOptimum, ()) {
  constexpr std::size_t rows = 7, items = 3;
  const std::vector<double> cost = whole_numbers(rows * items, 0, 1000);
  const std::vector<double> weight = whole_numbers(rows * items, 0, 1000);
  double lightest = 0.0;
  for (std::size_t row = 0; row < rows; ++row)
    lightest += *std::min_element(&weight[row * items], &weight[row * items] + items);
  const MckpProblem problem{rows, items, cost, weight, lightest + *rc::gen::inRange(0, 2500)};
  const MckpResult result = solve_mckp(problem, {}, *rc::gen::inRange<std::uint64_t>(0, 20));
  const double optimum = least_cost(problem), relaxed = relaxed_cost(problem);
  RC_ASSERT(result.feasible && result.weight <= problem.budget);
  RC_ASSERT(result.lower_bound <= optimum && optimum <= result.cost);
  RC_ASSERT(result.lower_bound >= relaxed - 1e-9 * optimum);
  if (result.proven) RC_ASSERT(result.cost == optimum);
}

double sum_of(std::span<const double> values, std::size_t items,
              const std::vector<std::size_t>& choice) {
  double sum = 0.0;
  for (std::size_t row = 0; row < choice.size(); ++row) sum += values[row * items + choice[row]];
  return sum;
}

void expect_relaxed(const MckpProblem& p) {
  const LinearSolution found = solve_linear(p);
  RC_ASSERT(found.feasible);
  RC_ASSERT(sum_of(p.weight, p.items, found.base) <= p.budget * (1.0 + 1e-12));
  const double cost = sum_of(p.cost, p.items, found.base);
  RC_ASSERT(std::abs(cost - found.price * found.room - relaxed_cost(p)) <= 1e-9 * (1.0 + cost));
}

// Many items of a row on one line, where prices make none of them better than another.
RC_GTEST_PROP(LinearBound, IsThatOfTheDualWhereItemsLieOnLines, ()) {
  constexpr std::size_t rows = 4, items = 7;
  std::vector<double> cost, weight;
  double lightest = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double slope = *rc::gen::inRange(1, 4);
    for (std::size_t i = 0; i < items; ++i) {
      weight.push_back(*rc::gen::inRange(0, 9));
      cost.push_back(40.0 - slope * weight.back() + (*rc::gen::inRange(0, 4) == 0 ? 3.0 : 0.0));
    }
    lightest += *std::min_element(weight.end() - items, weight.end());
  }
  expect_relaxed({rows, items, cost, weight, lightest + *rc::gen::inRange(0, 30)});
}

// The budget is the sum of a choice's weights, added up in another order: the last digit decides.
RC_GTEST_PROP(LinearBound, IsThatOfTheDualWhereAChoiceJustFits, ()) {
  constexpr std::size_t rows = 6, items = 3;
  std::vector<double> cost, weight;
  for (std::size_t i = 0; i < rows * items; ++i) {
    cost.push_back(uniform(0.0, 1.0));
    weight.push_back(uniform(0.0, 1.0));
  }
  std::vector<std::size_t> choice(rows);
  for (std::size_t& item : choice) item = *rc::gen::inRange<std::size_t>(0, items);
  double budget = 0.0;
  for (std::size_t row = rows; row-- > 0;) budget += weight[row * items + choice[row]];
  const MckpProblem problem{rows, items, cost, weight, budget};
  if (!solve_linear(problem).feasible) return;
  expect_relaxed(problem);
  RC_ASSERT(fits(problem, solve_linear(problem).base));
}

// Where some row may change within the room and save cost, the greedy choice has saved some.
RC_GTEST_PROP(LinearBound, TheGreedyChoiceUsesTheRoomThereIs, ()) {
  const auto rows = *rc::gen::inRange<std::size_t>(1, 6),
             items = *rc::gen::inRange<std::size_t>(2, 7);
  const std::vector<double> cost = whole_numbers(rows * items, 0, 30);
  const std::vector<double> weight = whole_numbers(rows * items, 0, 30);
  const MckpProblem problem{rows, items, cost, weight,
                            static_cast<double>(*rc::gen::inRange<std::size_t>(0, 25 * rows))};
  const LinearSolution found = solve_linear(problem);
  if (!found.feasible) return;
  const double base = sum_of(cost, items, found.base), greedy = sum_of(cost, items, found.greedy);
  RC_ASSERT(sum_of(weight, items, found.greedy) <= problem.budget);
  RC_ASSERT(greedy <= base);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t from = row * items + found.base[row];
    for (std::size_t to = row * items; to < (row + 1) * items; ++to) {
      if (weight[to] - weight[from] <= found.room && cost[to] < cost[from])
        RC_ASSERT(greedy < base);
    }
  }
}

}  // namespace
}  // namespace rubato
