// Do intervals hold the truth? Campaigns on sweeps that are shipped: fitted on part, tested on the
// rest. The table of all sweeps is in docs/gpus.md.

#include "explorer/coverage.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/calibration/sweep.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

Sweep v100_sweep(const GpuSpec& spec) {
  return read_sweep(source_dir() / "models/data/measured/v100_33workloads/sweep.csv", spec);
}

// 90 % is meant; 168 to 256 predictions of a kind, which share models, scatter by some points.
TEST(Coverage, NinetyPercentIntervalsHoldNineOfTen) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  const std::vector<CoverageRow> rows = measure_coverage(
      spec, v100_sweep(spec),
      {.points = {3, 5}, .fit = {.curve_core_mhz = {757.0, 952.0, 1207.0, 1530.0}}});
  ASSERT_EQ(rows.size(), 2U);
  for (const CoverageRow& row : rows) {
    SCOPED_TRACE(row.points);
    for (const Covered* of : {&row.cells, &row.plans}) {
      EXPECT_GE(of->count, 150U);
      EXPECT_GE(of->time, 0.85);
      EXPECT_GE(of->energy, 0.85);
      // Not because they are as wide as the answer: plans save 10 to 20 %.
      EXPECT_LT(of->time_width_pct, 12.0);
      EXPECT_LT(of->energy_width_pct, 12.0);
    }
    EXPECT_LE(row.cells.time, 0.97);
    EXPECT_LE(row.cells.energy, 0.97);
  }
}

TEST(Coverage, RefusesASweepOfOneKernel) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  Sweep sweep = v100_sweep(spec);
  sweep.kernels.resize(1);
  expect_error<UsageError>([&] { (void)measure_coverage(spec, sweep); }, "too few kernels");
}

}  // namespace
}  // namespace rubato
