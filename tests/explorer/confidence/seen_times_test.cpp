#include "explorer/confidence/seen_times.hpp"

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace rubato {
namespace {

// A kernel as the model has it: core and memory time overlap, and a part follows no clock.
struct Curve {
  double core, memory, fixed, overlap;

  [[nodiscard]] SeenTime at(double mhz) const {
    const double core_s = core * 1000.0 / mhz;
    return {mhz,
            fixed + std::pow(std::pow(core_s, overlap) + std::pow(memory, overlap), 1.0 / overlap)};
  }
};

Curve drawn_kernel(std::mt19937_64& random) {
  std::uniform_real_distribution<double> share(0.0, 1.0);
  return {share(random), share(random), 0.3 * share(random), 1.0 + 7.0 * share(random)};
}

std::vector<SeenTime> seen(const Curve& kernel, const std::vector<double>& clocks) {
  std::vector<SeenTime> times;
  for (const double mhz : clocks) times.push_back(kernel.at(mhz));
  return times;
}

// By brute force: no kernel of this form leaves its bounds, whatever was seen of it.
TEST(SeenTimes, HoldEveryKernelThatFollowsTheClockInPart) {
  constexpr double rounding = 1e-12;
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const Curve kernel = drawn_kernel(random);
    for (const std::vector<double>& clocks :
         {std::vector{1400.0, 1050.0}, {1410.0, 1200.0, 900.0}, {1000.0, 990.0, 600.0, 500.0}}) {
      const std::vector<SeenTime> times = seen(kernel, clocks);
      for (double mhz = 300.0; mhz <= 1800.0; mhz += 7.0) {
        const auto [least_s, most_s] = possible_times(times, mhz);
        EXPECT_LE(least_s, kernel.at(mhz).time_s + rounding) << mhz;
        EXPECT_GE(most_s, kernel.at(mhz).time_s - rounding) << mhz;
      }
    }
  }
}

TEST(SeenTimes, AreExactWhereTheyWereSeenAndWidenAway) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 50; ++i) {
    const std::vector<SeenTime> times = seen(drawn_kernel(random), {1400.0, 1050.0, 800.0});
    for (const SeenTime& one : times) {
      const auto [least_s, most_s] = possible_times(times, one.core_mhz);
      EXPECT_NEAR(least_s, one.time_s, 1e-12);
      EXPECT_NEAR(most_s, one.time_s, 1e-12);
      EXPECT_NEAR(distance_to(times, one.core_mhz), 0.0, 1e-12);
    }
    for (const double mhz : {1500.0, 1200.0, 900.0, 600.0}) {
      double before = possible_times(times, mhz).first;
      for (const double quantile : {0.0, 0.05, 0.3, 0.5, 0.95, 1.0}) {
        const double now = drawn_time(times, mhz, quantile);
        EXPECT_GE(now, before);
        before = now;
      }
      EXPECT_NEAR(before, possible_times(times, mhz).second, 1e-12);
    }
  }
}

// Two seen times of a kernel of which half follows the clock: by hand.
TEST(SeenTimes, BoundsByHand) {
  const std::array seen{SeenTime{1000.0, 1.0}, SeenTime{500.0, 1.5}};
  const auto between = possible_times(seen, 800.0);
  EXPECT_DOUBLE_EQ(between.first, 1.0);     // 1.5 x 500 / 800 is less
  EXPECT_DOUBLE_EQ(between.second, 1.125);  // a quarter of the way from 1 to 2 in 1 / clock
  const auto below = possible_times(seen, 250.0);
  EXPECT_DOUBLE_EQ(below.first, 2.5);   // goes on as between the two
  EXPECT_DOUBLE_EQ(below.second, 3.0);  // all of it follows the clock
  EXPECT_DOUBLE_EQ(distance_to(seen, 2000.0), std::log(2.0));
  EXPECT_NEAR(distance_to(seen, std::sqrt(0.5) * 1000.0), 0.25 * std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace rubato
