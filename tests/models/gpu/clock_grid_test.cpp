#include "models/gpu/clock_grid.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/gpu/spec.hpp"
#include "models/table/profile_table.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

const GpuSpec& gaming_spec() {
  static const GpuSpec loaded = load_gpu_spec("rtx-3080-ti");
  return loaded;
}

TEST(ClockGrid, HasThePaperAndTheFullGrid) {
  EXPECT_EQ(make_clock_grid(gaming_spec(), "paper").size(), 66U);
  EXPECT_EQ(grid_name(gaming_spec(), ""), "full");
  // 127 core clocks and "auto" x 6 memory states.
  const ClockGrid full = make_clock_grid(gaming_spec(), "full");
  EXPECT_EQ(full.size(), 128U * 6U);
  EXPECT_EQ(full.label(full.default_clock()), "auto/auto");
}

// So that nothing is lost where no grid is named.
TEST(ClockGrid, TheLargestHoldsTheClocksOfAllOthers) {
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    const ClockGrid largest = make_clock_grid(spec, "");
    for (const NamedGrid& grid : spec.grids) {
      const ClockGrid other = make_clock_grid(spec, grid.name);
      for (const ClockPair& pair : other.pairs())
        EXPECT_TRUE(largest.find(pair)) << name << ' ' << grid.name;
    }
  }
}

TEST(ClockGrid, ReadsASelection) {
  const ClockGrid grid = make_clock_grid(gaming_spec(), "mem=5001,auto core=210:420:105,auto");
  EXPECT_EQ(grid.size(), 8U);
  EXPECT_EQ(grid.label(ClockId{1}), "5001/315");
  EXPECT_EQ(grid.find("auto/auto"), grid.default_clock());
}

// Alone at the default clocks, else at each clock; the spec's own limit (350 W) is no setting.
TEST(ClockGrid, TakesPowerLimits) {
  const GpuSpec& spec = gaming_spec();
  const ClockGrid alone = make_clock_grid(spec, "limit=200:350:50");
  ASSERT_EQ(alone.size(), 4U);
  EXPECT_EQ(alone.label(alone.default_clock()), "auto/auto");
  for (const auto limit_w : {200.0, 250.0, 300.0}) {
    const auto id = alone.find(fmt::format("auto/auto, {} W", limit_w));
    ASSERT_TRUE(id);
    EXPECT_EQ(alone[*id].power_limit_w, limit_w);
    EXPECT_EQ(parse_clock_pair(spec, alone.label(*id)), alone[*id]);
  }
  const ClockGrid crossed = make_clock_grid(spec, "mem=5001 core=1470,1680 limit=200,300,200");
  EXPECT_EQ(crossed.size(), 2U * 2U + 1U);
  EXPECT_TRUE(crossed.find("5001/1470, 300 W"));
  EXPECT_FALSE(crossed.find("5001/1470"));
  EXPECT_EQ(make_clock_grid(spec, "paper limit=200,350").size(), 2U * 66U);
  for (const char* wrong : {"limit=50", "limit=200:1000:50", "limit=", "limit=x",
                            "limit=300:200:50", "limit=200:300", "limit=200:300:0"})
    expect_error<UsageError>([&] { (void)make_clock_grid(spec, wrong); }, "power limit");
}

// The V100 steps by 7.5 MHz; its sweeps and its driver name 1102 for 1102.5.
TEST(ClockGrid, TakesClocksAsSweepsNameThem) {
  const GpuSpec v100 = load_gpu_spec("v100-pcie");
  const ClockPair exact = parse_clock_pair(v100, "877/1102.5");
  EXPECT_EQ(exact.core_mhz, 1102.5);
  for (const char* name : {"877/1102", "877/1103"})
    EXPECT_EQ(parse_clock_pair(v100, name), exact) << name;
  EXPECT_EQ(make_clock_grid(v100, "mem=877 core=502:1102:150").label(ClockId{4}), "877/1102.5");
  EXPECT_EQ(ClockGrid(v100, {{exact.mem, 1102.0}}).label(ClockId{0}), "877/1102");  // a table's
  expect_error<UsageError>([&] { (void)parse_clock_pair(v100, "877/1104"); },
                           "does not support a core clock of 1104 MHz",
                           "the nearest one is 1102.5");
}

TEST(ClockGrid, RefusesClocksTheGpuDoesNotHave) {
  expect_error<UsageError>([] { (void)make_clock_grid(gaming_spec(), "papr"); },
                           "has no clock grid 'papr'; did you mean 'paper'?");
  expect_error<UsageError>([] { (void)make_clock_grid(gaming_spec(), "mem=5000 core=auto"); },
                           "has no memory clock '5000'; did you mean '5001'?");
  expect_error<UsageError>(
      [] { (void)make_clock_grid(gaming_spec(), "mem=5001 core=1000"); },
      "does not support a core clock of 1000 MHz; expected 210 to 2100 MHz in steps of 15",
      "the nearest one is 1005");
  expect_error<UsageError>([] { (void)make_clock_grid(gaming_spec(), "mem=5001 core=210,210"); },
                           "the clock grid holds 5001/210 twice");
  expect_error<UsageError>([] { (void)parse_clock_pair(gaming_spec(), "5001"); },
                           "'5001' is not a clock pair");
}

TEST(ProfileTable, HoldsNoBadCell) {
  expect_error<DataError>(
      [] {
        ProfileTable(1, 2, {1.0, -1.0}, {1.0, 1.0});
      },
      "row 0, clock 1: time_s is -1");
  expect_error<DataError>(
      [] { ProfileTable(1, 1, {1.0}, {std::numeric_limits<double>::quiet_NaN()}); },
      "energy_j is nan");
  expect_error<DataError>([] { ProfileTable(2, 1, {1.0}, {1.0}); },
                          "found 1 times and 1 energies; expected 2 x 1");
}

}  // namespace
}  // namespace rubato
