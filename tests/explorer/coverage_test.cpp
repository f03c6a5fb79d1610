// Do intervals hold the truth? Campaigns on sweeps that are shipped: fitted on part, tested on the
// rest. The table of all sweeps is in docs/gpus.md.

#include "explorer/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/validation/shipped_fits.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

// What intervals must hold of the sweep behind a spec, which is what docs/gpus.md lists less what
// one kernel more or less moves. 90 % is meant; what is far from it is said there.
struct SweepCase {
  const char* gpu;
  double cells, plans_time, plans_energy;  ///< least share inside
  double widest_pct;                       ///< of 90 % intervals, mean
};

void PrintTo(const SweepCase& of, std::ostream* out) { *out << of.gpu; }

Sweep sweep_of(const char* gpu) {
  return read_sweep(source_dir() / shipped_fit(gpu).data, load_gpu_spec(gpu));
}

class CoverageOf : public testing::TestWithParam<SweepCase> {};

TEST_P(CoverageOf, NinetyPercentIntervals) {
  const SweepCase& of = GetParam();
  const GpuSpec spec = load_gpu_spec(of.gpu);
  const std::vector<CoverageRow> rows = measure_coverage(
      spec, sweep_of(of.gpu),
      {.points = {3, 5}, .fit = {.curve_core_mhz = shipped_fit(of.gpu).curve_core_mhz}});
  ASSERT_EQ(rows.size(), 2U);
  for (const CoverageRow& row : rows) {
    SCOPED_TRACE(row.points);
    EXPECT_GE(row.cells.count, 50U);
    EXPECT_GE(row.cells.time, of.cells);
    EXPECT_GE(row.cells.energy, of.cells);
    if (row.plans.count < 50) continue;  // kernels of some sweeps have hardly a clock in common
    EXPECT_GE(row.plans.time, of.plans_time);
    EXPECT_GE(row.plans.energy, of.plans_energy);
    // Not because they are as wide as the answer, or beside it.
    EXPECT_LT(row.plans.time_width_pct, of.widest_pct);
    EXPECT_LT(row.plans.energy_width_pct, of.widest_pct);
    EXPECT_LT(std::abs(row.plans.energy_bias_pct), 0.25 * row.plans.energy_width_pct);
    EXPECT_LT(std::abs(row.plans.time_bias_pct), 0.25 * row.plans.time_width_pct);
  }
}

INSTANTIATE_TEST_SUITE_P(Sweeps, CoverageOf,
                         testing::Values(SweepCase{"v100-sxm2", 0.85, 0.85, 0.85, 12.0},
                                         SweepCase{"rtx-4050-laptop", 0.82, 0.75, 0.88, 15.0},
                                         SweepCase{"rtx-3080-ti-2", 0.88, 0.9, 0.9, 30.0},
                                         SweepCase{"gtx-1080-ti", 0.88, 0.84, 0.82, 9.0},
                                         SweepCase{"rtx-2070-super", 0.87, 0.84, 0.82, 13.0},
                                         SweepCase{"a100-sxm4-80gb", 0.83, 0.80, 0.84, 16.0}),
                         [](const auto& info) {
                           std::string name = info.param.gpu;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Three kernels of five clocks: nothing is left to test from five points, and little to learn from.
TEST(Coverage, TakesSweepsOfFewPoints) {
  const GpuSpec spec = load_gpu_spec("a100-pcie-80gb");
  const std::vector<CoverageRow> rows =
      measure_coverage(spec, sweep_of("a100-pcie-80gb"), {.points = {3, 0}, .groups = 3});
  EXPECT_GT(rows.at(0).cells.count, 0U);
  EXPECT_GT(rows.at(1).cells.count, 0U);
}

TEST(Coverage, RefusesASweepOfOneKernel) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  Sweep sweep = sweep_of("v100-sxm2");
  sweep.kernels.resize(1);
  expect_error<UsageError>([&] { (void)measure_coverage(spec, sweep); }, "too few kernels");
}

}  // namespace
}  // namespace rubato
