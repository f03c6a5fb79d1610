// The window against its definition, over more launches than sums are kept for.

#include "explorer/dwell_window.hpp"

#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Whole numbers, so that sums are exact in any order.
struct Launches {
  std::size_t clocks;
  std::vector<std::vector<double>> begun, times, costs;  // shape [launches x clocks]

  Launches(std::size_t count, std::size_t clocks_, int longest) : clocks(clocks_) {
    std::mt19937_64 random(11);
    const auto row = [&](int from, int to) {
      std::vector<double> values;
      for (std::size_t c = 0; c < clocks; ++c)
        values.push_back(std::uniform_int_distribution(from, to)(random));
      return values;
    };
    for (std::size_t i = 0; i < count; ++i) {
      begun.push_back(row(-1000, 1000));
      times.push_back(row(1, longest));
      costs.push_back(row(0, 20));
    }
  }
};

// Value and begin of the best run that ends behind `last` and is long enough; the first of equals.
std::pair<double, std::int64_t> best_run(const Launches& l, std::size_t last, std::size_t clock,
                                         double least_s) {
  std::pair<double, std::int64_t> best{infinity, 0};
  double time_s = 0.0, cost = 0.0;
  for (std::size_t begin = last + 1; begin-- > 0;) {
    time_s += l.times[begin][clock];
    cost += l.costs[begin][clock];
    if (time_s >= least_s && l.begun[begin][clock] + cost <= best.first)
      best = {l.begun[begin][clock] + cost, static_cast<std::int64_t>(begin)};
  }
  return best;
}

void expect_by_definition(const Launches& l, double least_s) {
  DwellWindow window(least_s, std::vector<double>(l.clocks, infinity));
  for (std::size_t i = 0; i < l.times.size(); ++i) {
    window.step(static_cast<std::int64_t>(i), l.begun[i], l.times[i], l.costs[i]);
    if (i % 97 != 0 && i + 1 != l.times.size()) continue;
    for (std::size_t c = 0; c < l.clocks; ++c) {
      const auto [value, start] = best_run(l, i, c, least_s);
      ASSERT_EQ(window.value(c), value) << "launch " << i << " clock " << c;
      ASSERT_EQ(window.start(c), start) << "launch " << i << " clock " << c;
    }
  }
}

TEST(DwellWindow, KeepsTheBestOfRunsLongEnough) {
  const Launches launches(2500, 131, 9);  // three bands of clocks
  for (const double least_s : {1.0, 9.0, 40.0, 700.0, 1e6}) expect_by_definition(launches, least_s);
}

TEST(DwellWindow, ClocksMayComeOfAgeFarApart) {
  Launches launches(1500, 3, 4);
  for (auto& times : launches.times) times[1] *= 50.0;
  expect_by_definition(launches, 200.0);
}

TEST(DwellWindow, BeginsWithTheValuesGiven) {
  DwellWindow window(10.0, {5.0, infinity});
  window.step(0, std::vector{1.0, 1.0}, std::vector{4.0, 12.0}, std::vector{2.0, 3.0});
  EXPECT_EQ(window.value(0), 7.0);
  EXPECT_EQ(window.value(1), 4.0);
  EXPECT_EQ(window.start(1), 0);
}

}  // namespace
}  // namespace rubato
