// Bounds of answers whose proof was given up, against all choices of small problems.

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

}  // namespace
}  // namespace rubato
