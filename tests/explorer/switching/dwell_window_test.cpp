// The window and the loops against their definitions, over more launches than sums are kept for.

#include "explorer/switching/dwell_window.hpp"

#include <algorithm>
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
  std::vector<std::vector<double>> begun, times, costs;  // shape [launches x padded clocks]

  Launches(std::size_t count, std::size_t clocks_, int longest) : clocks(clocks_) {
    std::mt19937_64 random(11);
    const auto row = [&](int from, int to) {
      std::vector<double> values;
      for (std::size_t c = 0; c < clocks; ++c)
        values.push_back(std::uniform_int_distribution(from, to)(random));
      values.resize(padded(clocks), values.back());
      return values;
    };
    for (std::size_t i = 0; i < count; ++i) {
      begun.push_back(row(-1000, 1000));
      std::fill(begun[i].begin() + static_cast<std::ptrdiff_t>(clocks), begun[i].end(), infinity);
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

LeastValue least_of(const std::vector<double>& values) {
  LeastValue least;
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (values[c] < least.value) least = {values[c], c};
  }
  return least;
}

void expect_by_definition(const Launches& l, double least_s, const ClockLoops& loops) {
  DwellWindow window(least_s, std::vector<double>(padded(l.clocks), infinity), loops);
  std::vector<double> ended(padded(l.clocks), 0.0);
  ended[0] = 7.0;
  std::vector<double> open(ended.size());
  std::vector<std::int64_t> open_start(ended.size());
  for (std::size_t i = 0; i < l.times.size(); ++i) {
    constexpr double best = 3.0;
    const LeastValue found = window.step({.step = static_cast<std::int64_t>(i),
                                          .best = best,
                                          .begun = l.begun[i].data(),
                                          .costs = l.costs[i].data(),
                                          .times_s = l.times[i].data(),
                                          .ended = ended.data()});
    if (i % 97 != 0 && i + 1 != l.times.size()) continue;
    window.open_runs(open, open_start);
    std::vector<double> values;
    for (std::size_t c = 0; c < l.clocks; ++c) {
      const auto [value, start] = best_run(l, i, c, least_s);
      ASSERT_EQ(window.value(c), value + best) << "launch " << i << " clock " << c;
      ASSERT_EQ(window.start(c), start) << "launch " << i << " clock " << c;
      const auto [any_value, any_start] = best_run(l, i, c, 0.0);
      ASSERT_EQ(open[c], any_value + best) << "launch " << i << " clock " << c;
      ASSERT_EQ(open_start[c], any_start) << "launch " << i << " clock " << c;
      values.push_back(value + best + ended[c]);
    }
    const LeastValue expected = least_of(values);
    ASSERT_EQ(found.value, expected.value) << "launch " << i;
    ASSERT_EQ(found.clock, expected.clock) << "launch " << i;
  }
}

TEST(DwellWindow, KeepsTheBestOfRunsLongEnough) {
  const Launches launches(2500, 131, 9);  // three bands of clocks
  for (const ClockLoops& loops : clock_loops()) {
    for (const double least_s : {1.0, 9.0, 40.0, 700.0, 1e6})
      expect_by_definition(launches, least_s, loops);
  }
}

TEST(DwellWindow, ClocksMayComeOfAgeFarApart) {
  Launches launches(1500, 3, 4);
  for (auto& times : launches.times) times[1] *= 50.0;
  for (const ClockLoops& loops : clock_loops()) expect_by_definition(launches, 200.0, loops);
}

TEST(DwellWindow, BeginsWithTheValuesGiven) {
  Launches launches(1, 2, 1);
  launches.begun[0] = {1.0, 1.0, infinity, infinity, infinity, infinity, infinity, infinity};
  launches.times[0] = {4.0, 12.0, 12.0, 12.0, 12.0, 12.0, 12.0, 12.0};
  launches.costs[0] = {2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0};
  const std::vector<double> ended(8, 0.0);
  std::vector<double> values(8, infinity);
  values[0] = 5.0;
  DwellWindow window(10.0, values);
  (void)window.step({.step = 0,
                     .best = 0.0,
                     .begun = launches.begun[0].data(),
                     .costs = launches.costs[0].data(),
                     .times_s = launches.times[0].data(),
                     .ended = ended.data()});
  EXPECT_EQ(window.value(0), 7.0);
  EXPECT_EQ(window.value(1), 4.0);
  EXPECT_EQ(window.start(1), 0);
}

// Each clock goes on or begins anew, whatever the instruction set.
TEST(ClockLoops, RunsOfAnyLengthBeginWhereThatIsLess) {
  const Launches launches(300, 131, 9);
  for (const ClockLoops& loops : clock_loops()) {
    std::vector<double> value(padded(launches.clocks), infinity), expected(value);
    std::vector<std::int64_t> start(value.size(), 0), expected_start(start);
    const std::vector<double> ended(value.size(), 0.0);
    double best = 0.0;
    for (std::size_t i = 0; i < launches.times.size(); ++i) {
      const auto step = static_cast<std::int64_t>(i);
      for (std::size_t c = 0; c < launches.clocks; ++c) {
        if (best + launches.begun[i][c] < expected[c]) {
          expected[c] = best + launches.begun[i][c];
          expected_start[c] = step;
        }
        expected[c] += launches.costs[i][c];
      }
      const LeastValue found = loops.any_length({value.size(), value.data(), start.data()},
                                                {.step = step,
                                                 .best = best,
                                                 .begun = launches.begun[i].data(),
                                                 .costs = launches.costs[i].data(),
                                                 .times_s = launches.times[i].data(),
                                                 .ended = ended.data()});
      ASSERT_EQ(value, expected) << loops.name << ", launch " << i;
      ASSERT_EQ(start, expected_start) << loops.name << ", launch " << i;
      ASSERT_EQ(found.value, least_of(expected).value) << loops.name << ", launch " << i;
      ASSERT_EQ(found.clock, least_of(expected).clock) << loops.name << ", launch " << i;
      best = found.value;
    }
  }
}

}  // namespace
}  // namespace rubato
