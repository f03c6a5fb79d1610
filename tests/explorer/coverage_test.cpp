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
#include "models/calibration/sweep.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"
#include "tests/shared_data.hpp"

namespace rubato {
namespace {

// A sweep, and what intervals must hold of it, which is what docs/gpus.md lists less what one
// kernel more or less moves. 90 % is meant; what is far from it is said there.
struct SweepCase {
  const char* gpu;
  const char* file;  ///< below models/data/measured, or shared
  const char* only;  ///< its rows with this gpu; nullptr: all
  bool shared;
  std::vector<double> curve_core_mhz;
  double cells, plans_time, plans_energy;  ///< least share inside
  double widest_pct;                       ///< of 90 % intervals, mean
};

void PrintTo(const SweepCase& of, std::ostream* out) { *out << of.gpu; }

Sweep sweep_of(const SweepCase& of, const GpuSpec& spec) {
  SweepColumns columns;
  if (of.only != nullptr) columns.where["gpu"] = of.only;
  return read_sweep(
      of.shared ? shared_data(of.file) : source_dir() / "models/data/measured" / of.file, spec,
      columns);
}

const SweepCase v100{.gpu = "v100-sxm2",
                     .file = "v100_33workloads/sweep.csv",
                     .only = nullptr,
                     .shared = false,
                     .curve_core_mhz = {757.0, 952.0, 1207.0, 1530.0},
                     .cells = 0.85,
                     .plans_time = 0.85,
                     .plans_energy = 0.85,
                     .widest_pct = 12.0};

class CoverageOf : public testing::TestWithParam<SweepCase> {};

TEST_P(CoverageOf, NinetyPercentIntervals) {
  const SweepCase& of = GetParam();
  if (of.shared) RUBATO_NEEDS_SHARED(of.file);
  const GpuSpec spec = load_gpu_spec(of.gpu);
  const std::vector<CoverageRow> rows = measure_coverage(
      spec, sweep_of(of, spec), {.points = {3, 5}, .fit = {.curve_core_mhz = of.curve_core_mhz}});
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

INSTANTIATE_TEST_SUITE_P(
    Sweeps, CoverageOf,
    testing::Values(
        v100,
        SweepCase{"rtx-4050-laptop",
                  "rtx4050laptop_kernels/kernels.csv",
                  nullptr,
                  false,
                  {},
                  0.82,
                  0.75,
                  0.88,
                  15.0},
        SweepCase{
            "rtx-3080-ti-2", "rtx3080ti_kernels/data.csv", nullptr, true, {}, 0.88, 0.9, 0.9, 30.0},
        SweepCase{"gtx-1080-ti",
                  "pascal_turing_grid/data.csv",
                  "GTX 1080 Ti",
                  true,
                  {},
                  0.88,
                  0.84,
                  0.82,
                  9.0},
        SweepCase{"rtx-2070-super",
                  "pascal_turing_grid/data.csv",
                  "RTX 2070 SUPER",
                  true,
                  {},
                  0.87,
                  0.84,
                  0.82,
                  13.0},
        SweepCase{"a100-sxm4-80gb",
                  "dcgm_core_sweeps/a100.csv",
                  nullptr,
                  true,
                  {},
                  0.83,
                  0.80,
                  0.84,
                  16.0}),
    [](const auto& info) {
      std::string name = info.param.gpu;
      std::ranges::replace(name, '-', '_');
      return name;
    });

// Three kernels of five clocks: nothing is left to test from five points, and little to learn from.
TEST(Coverage, TakesSweepsOfFewPoints) {
  RUBATO_NEEDS_SHARED("powercap_freq/data.csv");
  const GpuSpec spec = load_gpu_spec("a100-pcie-80gb");
  const std::vector<CoverageRow> rows =
      measure_coverage(spec,
                       read_sweep(shared_data("powercap_freq/data.csv"), spec,
                                  {.renamed = {}, .where = {{"gpu", "A100-PCIe-80GB"}}}),
                       {.points = {3, 0}, .groups = 3});
  EXPECT_GT(rows.at(0).cells.count, 0U);
  EXPECT_GT(rows.at(1).cells.count, 0U);
}

TEST(Coverage, RefusesASweepOfOneKernel) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  Sweep sweep = sweep_of(v100, spec);
  sweep.kernels.resize(1);
  expect_error<UsageError>([&] { (void)measure_coverage(spec, sweep); }, "too few kernels");
}

}  // namespace
}  // namespace rubato
