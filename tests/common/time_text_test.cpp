#include "common/time_text.hpp"

#include <array>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace rubato {
namespace {

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
