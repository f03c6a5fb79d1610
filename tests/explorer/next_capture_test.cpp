#include "explorer/next_capture.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/made_exploration.hpp"

namespace rubato {
namespace {

// Two runs may be the true one: the time of one follows the core clock, that of the other does not.
// Both save as much energy as the clock is lower, in percent.
std::vector<DrawnClock> either_follows_or_not() {
  std::vector<DrawnClock> clocks;
  for (double mhz = 600.0; mhz < 1000.0; mhz += 10.0) {
    const double lower_pct = 100.0 * (1.0 - mhz / 1000.0);
    clocks.push_back({mhz, {{100.0 * (1000.0 / mhz - 1.0), -lower_pct}, {0.0, -lower_pct}}});
  }
  return clocks;
}

// By hand: at slack 5 % the one that follows the clock can be set to 960 MHz (1000 / 1.05 is 952).
// The other, seen at 800 MHz to take no longer, can be set down to 1 / 1.05 of that, 770 MHz.
TEST(NextCapture, IsWorthWhatEachTruthCouldThenSave) {
  const std::vector<DrawnClock> clocks = either_follows_or_not();
  bool found = false;
  for (const NextCapture& next : worth_of_captures(clocks, 1000.0, 0.05)) {
    if (next.core_mhz != 800.0) continue;
    found = true;
    EXPECT_NEAR(next.saving_frac, 0.5 * (0.04 + 0.23), 1e-9);
    // Between captures both bounds of the first are one line; below, the other's differ by
    // 1/.77-1/.8.
    EXPECT_NEAR(next.width_frac, 0.5 * 0.9 * (800.0 / 770.0 - 1.0), 1e-9);
  }
  EXPECT_TRUE(found);
}

TEST(NextCapture, WithoutSlackOnlyTheTruthThatTakesNoLongerSaves) {
  for (const NextCapture& next : worth_of_captures(either_follows_or_not(), 1000.0, 0.0)) {
    EXPECT_GE(next.core_mhz, 600.0);
    EXPECT_LE(next.core_mhz, 920.0);
    EXPECT_NEAR(next.saving_frac, 0.5 * (1.0 - next.core_mhz / 1000.0), 1e-9);
    EXPECT_NEAR(next.width_frac, 0.0, 1e-9);
  }
}

// What an exploration says of its captured kernels: a second capture saves more than the answer
// now, and knows its time better.
TEST(NextCapture, OfAnExplorationAddsToItsAnswer) {
  GraphExplorationInput input = made_exploration_input({.layers = 2}, {});
  input.questions = {{Granularity::run, Aggregation::global, LeastWaste{0.1}}};
  input.odds_frac = 0.9;
  const auto next = next_measurement(explore_captured(input));
  ASSERT_TRUE(next);
  EXPECT_DOUBLE_EQ(next->slack_frac, 0.1);
  EXPECT_GT(next->best().saving_frac, next->saving_now_frac);
  if (next->width_now_frac) {
    EXPECT_LT(next->best().width_frac, *next->width_now_frac);
  }
}

}  // namespace
}  // namespace rubato
