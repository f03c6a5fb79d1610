#include "explorer/confidence/error_reach.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "models/calibration/sweep_reader.hpp"
#include "models/gpu/spec.hpp"
#include "models/validation/error_growth.hpp"
#include "models/validation/model_errors.hpp"
#include "tests/paths.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// Nobody measured what the clocks beyond do; a default clock beyond is no better known.
TEST(ErrorReach, GrowsBeyondTheFittedClocks) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid = make_clock_grid(spec, "full");
  const auto reach = [&](const char* clock) { return error_reach(spec, grid, *grid.find(clock)); };
  spec.fit_errors = {{"below_fitted_time_growth", 20.0},   {"below_fitted_energy_growth", 40.0},
                     {"below_fitted_tested", 1.0},         {"above_fitted_time_growth", 60.0},
                     {"above_fitted_energy_growth", 80.0}, {"above_fitted_tested", 1.0}};
  write_errors({}, spec);
  spec.fitted_range = FittedRange{.min_core_mhz = 900.0, .max_core_mhz = 1410.0};
  EXPECT_NEAR(reach("1593/900").time, 1.0, 1e-12);
  EXPECT_NEAR(reach("1593/855").time, 1.0 + 20.0 * std::log(900.0 / 855.0), 1e-9);
  EXPECT_NEAR(reach("1593/855").energy, 1.0 + 40.0 * std::log(900.0 / 855.0), 1e-9);
  const double inside = reach("1593/1305").time;
  EXPECT_NEAR(reach("1593/1305").energy, inside, 1e-9);
  spec.fitted_range->max_core_mhz = 1380.0;
  EXPECT_NEAR(reach("1593/1305").time, inside * (1.0 + 60.0 * std::log(1410.0 / 1380.0)), 1e-9);
  EXPECT_NEAR(reach("1593/1305").energy, inside * (1.0 + 80.0 * std::log(1410.0 / 1380.0)), 1e-9);
  EXPECT_EQ(reach("1593/1410"), ErrorReach{});
  spec.fitted_range.reset();
  EXPECT_NEAR(reach("1593/1305").time, inside, 1e-9);
}

// Time has its own reach, energy its own.
TEST(ErrorReach, ErrorsStretchTimeAndEnergy) {
  const Cost cost = with_error({2.0, 3.0}, {0.5, 2.0}, {std::log(4.0), std::log(3.0)});
  EXPECT_NEAR(cost.time_s, 4.0, 1e-12);
  EXPECT_NEAR(cost.energy_j, 27.0, 1e-12);
}

// Where a power limit leaves one clock, it does not matter that this one is beyond the fit; that it
// is one the model says, and may err.
TEST(ErrorReach, KnowsThatALimitLeavesOneClock) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.fitted_range = FittedRange{.min_core_mhz = 510.0, .max_core_mhz = 1000.0};
  const MemStateId mem = spec.default_clock.mem;
  const auto reach = [&](double mhz) {
    return error_reach(spec, {mem, 1200.0, 1410.0}, {mem, mhz, 1350.0}).energy;
  };
  const double one_clock = reach(1200.5);
  EXPECT_GT(one_clock, 0.5);
  EXPECT_LT(one_clock, 1.0);
  EXPECT_NEAR(reach(1190.0), growth_at(spec, 1200.0).energy * one_clock, 1e-9);
  EXPECT_GT(growth_at(spec, 1200.0).energy, 1.1);
  EXPECT_EQ(error_reach(spec, {mem, 1200.0, 1410.0}, {mem, 1200.0, 1410.0}), ErrorReach{});
}

TEST(TimeBand, IsNoWiderThanWhatClocksChange) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const MemStateId low{1}, high{3};  // 810 and 9251 MHz
  const ClockInEffect usual{high, 1500.0, 1500.0}, limited{high, 1200.0, 1500.0};
  const auto expect = [](const TimeBand& band, double low_end, double high_end) {
    EXPECT_DOUBLE_EQ(band.low, low_end);
    EXPECT_DOUBLE_EQ(band.high, high_end);
  };
  constexpr double any = std::numeric_limits<double>::infinity();
  expect(time_band(spec, usual, usual), 1.0, 1.0);
  expect(time_band(spec, usual, {high, 1000.0, 1000.0}), 1.0, 1.5);
  expect(time_band(spec, {high, 1000.0, 1000.0}, usual), 1.0 / 1.5, 1.0);
  // A model may say too low a clock in effect.
  expect(time_band(spec, limited, {high, 1000.0, 1000.0}), 1.0, 1.5);
  expect(time_band(spec, usual, {low, 1000.0, 1000.0}), 1.0, any);
  expect(time_band(spec, {low, 1000.0, 1000.0}, usual), 0.0, any);
  expect(time_band(spec, limited, {low, 1500.0, 1500.0}), 0.0, any);  // the limit lets go
  expect(time_band(spec, usual, 350.0, {high, 900.0, 1000.0}, 250.0), 1.0, any);
  expect(time_band(spec, limited, 350.0, usual, 450.0), 0.0, 1.0);
}

// The V100's crossbar carries half as much at 600 MHz as at 802: kernels there take up to 38 % more
// than the clocks' ratio. Points scatter by up to 3 %.
TEST(TimeBand, HoldsWhatWasMeasuredWhereTheCrossbarSteps) {
  const GpuSpec spec = load_gpu_spec("v100-pcie");
  const MemStateId mem = spec.default_clock.mem;
  std::size_t seen = 0, beyond_ratio = 0;
  for (const SweepKernel& kernel :
       read_sweep(measured_data("dcgm_core_sweeps/v100.csv"), spec).kernels) {
    const auto time_at = [&](double mhz) -> std::optional<double> {
      const auto point = std::ranges::find_if(
          kernel.points, [&](const SweepPoint& p) { return p.clock.core_mhz == mhz; });
      return point == kernel.points.end() ? std::nullopt : point->time_s;
    };
    const auto usual_s = time_at(1380.0);
    if (!usual_s) continue;
    for (const double mhz : {502.0, 600.0, 802.0, 1087.0}) {
      const auto time_s = time_at(mhz);
      if (!time_s) continue;
      ++seen;
      beyond_ratio += *time_s > 1.03 * *usual_s * 1380.0 / mhz;
      EXPECT_LE(*time_s,
                1.03 * *usual_s * time_band(spec, {mem, 1380.0, 1380.0}, {mem, mhz, mhz}).high)
          << kernel.name << " at " << mhz << " MHz";
    }
  }
  EXPECT_GT(seen, 300U);
  EXPECT_GT(beyond_ratio, 50U);
}

}  // namespace
}  // namespace rubato
