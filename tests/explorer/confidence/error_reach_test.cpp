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

// Clocks that a power limit lowers to the same one are the same, whatever was asked for.
TEST(ErrorReach, KnowsThatALimitLeavesOneClock) {
  const Trace trace = load_trace("gpt3-xl");
  const GpuModel limited(load_gpu_spec("rtx-3080-ti"), trace, 150.0),
      free(load_gpu_spec("rtx-3080-ti"), trace, 400.0);
  const ClockGrid grid = make_clock_grid(free.spec(), "mem=auto core=1050,2085,auto");
  const ClockId high = *grid.find("auto/2085"), low = *grid.find("auto/1050");
  const auto dense = id_at<KernelId>(static_cast<std::size_t>(
      std::ranges::max_element(trace.kernels, {},
                               [](const Kernel& k) { return k.flops.value_or(0); }) -
      trace.kernels.begin()));
  const double high_mhz = limited.evaluate(dense, grid[high]).core_mhz;
  ASSERT_LT(high_mhz, 1900.0);
  EXPECT_EQ(error_reach(limited, grid, dense, high), 0.0);
  // From the clock in effect, not from the one that was asked for.
  const double low_mhz = limited.evaluate(dense, grid[low]).core_mhz;
  EXPECT_NEAR(error_reach(limited, grid, dense, low),
              error_reach(limited.spec(), {MemStateId{5}, high_mhz}, {MemStateId{5}, low_mhz}),
              1e-9);
  EXPECT_LT(error_reach(limited, grid, dense, low), error_reach(free, grid, dense, low));
}

}  // namespace
}  // namespace rubato
