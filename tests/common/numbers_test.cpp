#include "common/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/hash.hpp"
#include "common/statistics.hpp"

namespace rubato {
namespace {

TEST(Numbers, ShortestFormReadsBackAsTheSameDouble) {
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(1e-5), "1e-05");
  EXPECT_EQ(format_number(1410.0), "1410");
}

TEST(Numbers, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(format_number(-0.0), "0");
  EXPECT_EQ(format_fixed(-0.004, 2), "0.00");
  EXPECT_EQ(format_fixed(-0.005001, 2), "-0.01");
  EXPECT_EQ(format_fixed(-0.4, 0), "0");
  EXPECT_EQ(format_fixed(-10.0, 1), "-10.0");
  EXPECT_EQ(format_fixed(1e300, 4), "1e+300");  // not 300 digits
  EXPECT_EQ(format_fixed(1e12, 4), "1e+12");    // nor more than it holds
  EXPECT_EQ(format_fixed(1e12, 0), "1000000000000");
  EXPECT_EQ(format_signed(-0.004, 2), "+0.00");
  EXPECT_EQ(format_signed(1.5, 1), "+1.5");
  EXPECT_EQ(format_signed(-1.5, 1), "-1.5");
}

RC_GTEST_PROP(Statistics, HalfOfTheValuesLieOnEitherSideOfTheMedian, (std::vector<int> values)) {
  RC_PRE(!values.empty());
  const int middle = median(values);
  const auto below = std::ranges::count_if(values, [&](int v) { return v < middle; });
  const auto above = std::ranges::count_if(values, [&](int v) { return v > middle; });
  RC_ASSERT(2 * below <= std::ssize(values));
  RC_ASSERT(2 * above <= std::ssize(values));
}

TEST(Statistics, MedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  EXPECT_EQ(median(std::vector{4.0, 1.0, 2.0, 100.0}), 3.0);
  EXPECT_EQ(median(std::vector{7}), 7);
}

RC_GTEST_PROP(Numbers, RoundTripOfAnyFiniteDouble, (double value)) {
  RC_PRE(std::isfinite(value));
  RC_ASSERT(parse_number(format_number(value)) == value);
}

TEST(Numbers, OnlyWholeNumbersAreAccepted) {
  for (const char* text : {"", " 1", "1 ", "1,5", "0x10", "nan", "inf", "1e999", "--1"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
  EXPECT_FALSE(parse_count("-1"));
  EXPECT_FALSE(parse_count("1.0"));
  EXPECT_EQ(parse_count("24"), 24U);
}

TEST(Numbers, CompensatedSumKeepsSmallTerms) {
  const std::vector<double> terms{1e16, 1.0, -1e16, 1.0};
  EXPECT_EQ(sum(terms), 2.0);  // a plain sum gives 1
}

TEST(Hash, IsTheSameEverywhere) {
  // Value of the reference implementation for the empty input.
  EXPECT_EQ(content_hash(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(content_hash("a"), content_hash("b"));
}

TEST(TimeText, HasFourDigitsOfTheUnitThatSuits) {
  for (const auto& [time_s, expected] : {
           std::pair{0.0, "0 s"},
           {22e-3, "22 ms"},
           {1e-6, "1 us"},
           {94.27e-6, "94.27 us"},
           {0.72846, "728.5 ms"},
           {5.095694, "5.096 s"},
           {3600.4, "3600 s"},
           {12345.6, "12346 s"},
           {2.5e-9, "0.0025 us"},
           {-0.047, "-47 ms"},
       })
    EXPECT_EQ(time_text(time_s), expected);
}

// Around each border no text says 1000 of a unit.
TEST(TimeText, SaysOneOfTheNextUnitRatherThanAThousand) {
  for (const double border_s : {1e-3, 1.0}) {
    const std::string one = border_s < 1.0 ? "1 ms" : "1 s";
    const std::string below = border_s < 1.0 ? "999.9 us" : "999.9 ms";
    EXPECT_EQ(time_text(border_s), one);
    EXPECT_EQ(time_text(0.99996 * border_s), one);
    EXPECT_EQ(time_text(0.99994 * border_s), below);
  }
  EXPECT_EQ(time_text(9999.4), "9999 s");
  EXPECT_EQ(time_text(9999.6), "10000 s");
}

TEST(TimeText, UnitsScaleSeconds) {
  for (const double time_s : {3e-6, 3e-3, 3.0})
    EXPECT_NEAR(time_unit(time_s).per_s * time_s, 3.0, 1e-12) << time_unit(time_s).name;
}

}  // namespace
}  // namespace rubato
