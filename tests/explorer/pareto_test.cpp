#include "explorer/pareto.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/uniform.hpp"

namespace rubato {
namespace {

bool beats(const std::vector<double>& x, const std::vector<double>& y, std::size_t a,
           std::size_t b) {
  return x[a] <= x[b] && y[a] <= y[b] && (x[a] < x[b] || y[a] < y[b]);
}

RC_GTEST_PROP(ParetoFront, AgreesWithTheDefinition, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  const std::vector<double> x = whole_numbers(count, 0, 6), y = whole_numbers(count, 0, 6);
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
  const std::vector<double> x = whole_numbers(count, 0, 6), y = whole_numbers(count, 0, 6);
  const std::vector<std::size_t> hull = lower_hull(x, y);
  for (double price = 0.0; price < 8.0; price += 0.25) {
    const auto value = [&](std::size_t i) { return y[i] + price * x[i]; };
    double best = value(0), best_on_hull = value(hull[0]);
    for (std::size_t i = 0; i < count; ++i) best = std::min(best, value(i));
    for (const std::size_t i : hull) best_on_hull = std::min(best_on_hull, value(i));
    RC_ASSERT(best_on_hull == best);
  }
}

// Andrew's chain over the whole front, one point after the other.
std::vector<std::size_t> hull_by_scan(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<std::size_t> hull;
  for (const std::size_t p : pareto_front(x, y)) {
    while (hull.size() >= 2) {
      const std::size_t a = hull[hull.size() - 2], b = hull.back();
      if ((y[b] - y[a]) * (x[p] - x[b]) < (y[p] - y[b]) * (x[b] - x[a])) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
  return hull;
}

// Integers, so that products are exact and points lie on chords: long rows go through every
// level of the halving, and one finder sees rows of all lengths.
RC_GTEST_PROP(LowerHull, AgreesWithAScanOfTheSortedFront, ()) {
  LowerHull finder;
  for (int rows = 0; rows < 4; ++rows) {
    const auto count = *rc::gen::inRange<std::size_t>(1, 300);
    const auto range = *rc::gen::element(3, 40, 1000);
    const auto at = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, range));
    const auto off = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, 4 * range));
    std::vector<double> x, y;
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back(at[i]);
      // On or a little above a falling parabola, or anywhere.
      y.push_back(off[i] >= range ? (range - at[i]) * (range - at[i]) + off[i] % 4 : off[i]);
    }
    std::vector<std::size_t> found;
    for (const HullPoint& p : finder.of(x, y)) {
      RC_ASSERT(p.x == x[p.position] && p.y == y[p.position]);
      found.push_back(p.position);
    }
    RC_ASSERT(found == hull_by_scan(x, y));
    RC_ASSERT(found == lower_hull(x, y));
  }
}

// The point farthest below a chord is always next to one of its ends, and has copies: the
// halving goes as deep as it can, with nearly all points on one side each time.
TEST(LowerHull, SplitsOffOnePointAtATime) {
  for (const bool steep_first : {true, false}) {
    std::vector<double> x, y;
    constexpr int points = 40, copies = 5;
    for (int i = 0; i < points * copies; ++i) {
      const int at = i % points;
      x.push_back(steep_first ? at : std::ldexp(1.0, at));
      y.push_back(steep_first ? std::ldexp(1.0, points - at) : points - at);
    }
    EXPECT_EQ(lower_hull(x, y), hull_by_scan(x, y));
    // Mirrored: the chain is on the other side.
    std::vector<double> left, low;
    for (std::size_t i = 0; i < x.size(); ++i) {
      left.push_back(y[i]);
      low.push_back(x[i]);
    }
    EXPECT_EQ(lower_hull(left, low), hull_by_scan(left, low));
  }
}

}  // namespace
}  // namespace rubato
