// The functions, against long double, with the errors that their headers state.

#include "common/vectors/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/uniform.hpp"

namespace rubato {
namespace {

using lanes::Two;

double exp2_of(double x) { return lanes::exp2(lanes::all<Two>(x))[0]; }
double log2_of(double x) { return lanes::log2(lanes::all<Two>(x))[0]; }
double soft_factor_of(double x, double p) {
  return lanes::soft_factor(lanes::all<Two>(x), 1.0 / p)[0];
}

TEST(Lanes, PowersOfTwoAreExact) {
  for (int n = -1022; n <= 1023; ++n) EXPECT_EQ(exp2_of(n), std::ldexp(1.0, n)) << n;
  EXPECT_EQ(exp2_of(1024.0), std::numeric_limits<double>::infinity());
  for (int n = -1022; n <= 1023; ++n) EXPECT_EQ(log2_of(std::ldexp(1.0, n)), n) << n;
}

TEST(Lanes, ExponentialAndLogarithmAreAsExactAsStated) {
  constexpr int steps = 2'000'000;
  double worst_exp2 = 0.0, worst_log2 = 0.0;
  for (int i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / steps;
    const double x = -1022.0 + 2045.0 * share;
    const long double power = std::exp2(static_cast<long double>(x));
    worst_exp2 = std::max(worst_exp2, static_cast<double>(std::abs(exp2_of(x) / power - 1.0L)));
    const double m = 1.0 + share;
    const long double logarithm = std::log2(static_cast<long double>(m));
    worst_log2 = std::max(
        worst_log2,
        static_cast<double>(std::abs(lanes::log2_of_mantissa(lanes::all<Two>(m))[0] - logarithm)));
  }
  RecordProperty("exp2", fmt::format("{}", worst_exp2));
  RecordProperty("log2", fmt::format("{}", worst_log2));
  EXPECT_LT(worst_exp2, 3e-16);
  EXPECT_LT(worst_log2, 3e-16);
}

RC_GTEST_PROP(Lanes, TheSoftFactorIsThatOfThePNorm, ()) {
  const double p = std::exp(uniform(-2.0, 4.0));
  const double x = -std::exp(uniform(-40.0, std::log(1022.0)));
  const long double y = std::exp2(static_cast<long double>(x));
  const long double expected = std::exp(std::log1p(y) / static_cast<long double>(p));
  // Times ln 2 / p of the result: 3e-16 of the logarithm, up to half as much of 2^x (that of a sum
  // of 1 and y), and half a unit of their product with 1/p, which is at most 1/p.
  const double bound = 4e-16 + (3e-16 + 2.2e-16 + 1.2e-16) * std::log(2.0) / p;
  RC_ASSERT(std::abs(soft_factor_of(x, p) / expected - 1.0L) < bound);
  RC_ASSERT(soft_factor_of(x, p) >= 1.0);
}

TEST(Lanes, NotANumberStaysOne) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(soft_factor_of(nan, 2.0)));
  EXPECT_TRUE(std::isnan(exp2_of(nan)));
}

}  // namespace
}  // namespace rubato
