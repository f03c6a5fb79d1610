#include "explorer/pareto.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rubato {
namespace {

// Small integers on purpose: they collide often, and ties are where sweeps go wrong.
std::vector<double> small_numbers(std::size_t count) {
  std::vector<double> numbers;
  for (const int x : *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, 6)))
    numbers.push_back(x);
  return numbers;
}

bool beats(const std::vector<double>& x, const std::vector<double>& y, std::size_t a,
           std::size_t b) {
  return x[a] <= x[b] && y[a] <= y[b] && (x[a] < x[b] || y[a] < y[b]);
}

RC_GTEST_PROP(ParetoFront, AgreesWithTheDefinition, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  const std::vector<double> x = small_numbers(count), y = small_numbers(count);
  const std::vector<std::size_t> front = pareto_front(x, y);
  for (std::size_t i = 0; i < count; ++i) {
    bool lost = false;
    for (std::size_t j = 0; j < count; ++j) {
      const bool earlier_copy = j < i && x[j] == x[i] && y[j] == y[i];
      lost = lost || earlier_copy || beats(x, y, j, i);
    }
    RC_ASSERT((std::ranges::find(front, i) != front.end()) == !lost);
  }
}

RC_GTEST_PROP(LowerHull, HoldsTheBestPointForEveryPrice, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  const std::vector<double> x = small_numbers(count), y = small_numbers(count);
  const std::vector<std::size_t> hull = lower_hull(x, y);
  for (double price = 0.0; price < 8.0; price += 0.25) {
    const auto value = [&](std::size_t i) { return y[i] + price * x[i]; };
    double best = value(0), best_on_hull = value(hull[0]);
    for (std::size_t i = 0; i < count; ++i) best = std::min(best, value(i));
    for (const std::size_t i : hull) best_on_hull = std::min(best_on_hull, value(i));
    RC_ASSERT(best_on_hull == best);
  }
}

}  // namespace
}  // namespace rubato
