// Units that would make sense, and times that no clock explains.
#include "traces/plausible.hpp"

#include <array>

#include <gtest/gtest.h>

namespace rubato {
namespace {

std::string power_text(double watts, std::span<const ReadColumn> columns) {
  return implausible("power", watts, "W", board_power_w, columns).value_or("");
}

// Whatever unit a column is in: a number that is right in it is refused as ours, with that unit.
TEST(Plausible, NamesTheUnitThatMakesSense) {
  constexpr double right_w = 250.0, right_mhz = 1410.0;
  for (const char* name : {"mW", "uW", "kW"}) {
    const MeasuredUnit& unit = *find_unit(name);
    const std::array column{
        ReadColumn{.name = "P", .quantity = Quantity::power, .option = "--column power_w=P:"}};
    EXPECT_NE(power_text(right_w / unit.scale, column)
                  .find(std::string("(250 W if P is in ") + name + ": --column power_w=P:" + name),
              std::string::npos)
        << name << power_text(right_w / unit.scale, column);
  }
  for (const char* name : {"kHz", "Hz", "GHz"}) {
    const std::array column{ReadColumn{.name = "f", .quantity = Quantity::clock}};
    const auto wrong =
        implausible("f", right_mhz / find_unit(name)->scale, "MHz", core_clock_mhz, column);
    ASSERT_TRUE(wrong) << name;
    EXPECT_NE(wrong->find(std::string("(1410 MHz if f is in ") + name + ")"), std::string::npos)
        << *wrong;
  }
  EXPECT_EQ(power_text(right_w, {}), "");
}

// Power is energy over time: either may be in another unit.
TEST(Plausible, NamesTheColumnThatIsInAnotherUnit) {
  const auto text = [](double watts) {
    const std::array columns{
        ReadColumn{.name = "energy", .quantity = Quantity::energy},
        ReadColumn{.name = "time", .quantity = Quantity::time, .divides = true}};
    return power_text(watts, columns);
  };
  EXPECT_NE(text(300.0 / 3600.0).find("300 W if energy is in Wh"), std::string::npos);
  EXPECT_NE(text(300e3).find("300 W if energy is in mJ"), std::string::npos);
  EXPECT_NE(text(300e-6).find("300 W if time is in us"), std::string::npos);
  EXPECT_EQ(text(1e30), "power is 1e+30 W; expected 1 to 5000 W");  // no unit makes sense
}

// What was read in one unit, and is meant in another.
TEST(Plausible, KnowsTheUnitThatWasGiven) {
  const std::array column{ReadColumn{.name = "P", .quantity = Quantity::power, .scale = 1e-3}};
  EXPECT_NE(power_text(0.25, column).find("250 W if P is in W)"), std::string::npos)
      << power_text(0.25, column);
}

// t = cycles / f, and a second kernel that follows the memory clock: nothing is odd, at any ratio.
TEST(OddTimes, ClocksExplainWhatTheyCan) {
  std::vector<TimedSetting> settings;
  for (const double core : {210.0, 1410.0, 2100.0}) {
    for (const double mem : {405.0, 9501.0})
      settings.push_back({.time_s = 1e6 / core / mem, .core_mhz = core, .mem_mhz = mem});
  }
  EXPECT_TRUE(odd_times(settings).empty());
  settings[4].time_s *= 1e3;  // at 2100 and 405 MHz
  const std::vector<OddTime> odd = odd_times(settings);
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].at, 4U);
  EXPECT_LT(odd[0].expected.high, settings[4].time_s);
  const std::string text =
      odd_time_text(odd[0], settings, {.name = "time", .quantity = Quantity::time}, "t.csv:3");
  EXPECT_NE(text.find("in t.csv:3; expected"), std::string::npos) << text;
  EXPECT_NE(text.find("s if time is in ms;"), std::string::npos) << text;
  EXPECT_TRUE(odd_times(std::vector<TimedSetting>{settings[4]}).empty());
  EXPECT_TRUE(odd_times({}).empty());
}

// Of two that contradict each other nobody knows which is wrong: one is named, with the other.
TEST(OddTimes, OfTwoOneIsNamed) {
  const std::vector<TimedSetting> two{{.time_s = 0.09, .core_mhz = 1410.0},
                                      {.time_s = 92000.0, .core_mhz = 1380.0}};
  const std::vector<OddTime> odd = odd_times(two);
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_NE(odd[0].at, odd[0].usual);
}

TEST(Units, HaveAQuantity) {
  EXPECT_EQ(find_unit("fortnight"), nullptr);
  EXPECT_EQ(find_unit("Wh")->quantity, Quantity::energy);
  EXPECT_EQ(unit_names(Quantity::clock), "MHz, kHz, Hz, GHz");
}

}  // namespace
}  // namespace rubato
