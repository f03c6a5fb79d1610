#include "explorer/confidence/error_reach.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "models/gpu/spec.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// Nobody measured what the clocks beyond do; a default clock beyond is no better known.
TEST(ErrorReach, GrowsBeyondTheFittedClocks) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid = make_clock_grid(spec, "full");
  const auto reach = [&](const char* clock) { return error_reach(spec, grid, *grid.find(clock)); };
  spec.fitted_range = FittedRange{.min_core_mhz = 900.0, .max_core_mhz = 1410.0};
  EXPECT_NEAR(reach("1593/900"), 1.0, 1e-12);
  EXPECT_NEAR(reach("1593/855"), 1.0 + 3.0 * std::log(900.0 / 855.0) / 0.1, 1e-9);
  EXPECT_NEAR(reach("1593/510"), 4.0, 1e-12);
  const double inside = reach("1593/1305");
  spec.fitted_range->max_core_mhz = 1380.0;
  EXPECT_NEAR(reach("1593/1305"), inside * (1.0 + 3.0 * std::log(1410.0 / 1380.0) / 0.1), 1e-9);
  EXPECT_EQ(reach("1593/1410"), 0.0);
  spec.fitted_range.reset();
  EXPECT_NEAR(reach("1593/1305"), inside, 1e-9);
}

// Where a power limit leaves one clock, it does not matter that this one is beyond the fit; that it
// is one the model says, and may err.
TEST(ErrorReach, KnowsThatALimitLeavesOneClock) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.fitted_range = FittedRange{.min_core_mhz = 510.0, .max_core_mhz = 1000.0};
  const MemStateId mem = spec.default_clock.mem;
  const auto reach = [&](double mhz) {
    return error_reach(spec, {mem, 1200.0, 1410.0}, {mem, mhz, 1350.0});
  };
  const double one_clock = reach(1200.5);
  EXPECT_GT(one_clock, 0.5);
  EXPECT_LT(one_clock, 1.0);
  EXPECT_NEAR(reach(1190.0), 4.0 * one_clock, 1e-9);
  EXPECT_EQ(error_reach(spec, {mem, 1200.0, 1410.0}, {mem, 1200.0, 1410.0}), 0.0);
}

}  // namespace
}  // namespace rubato
