// Do intervals hold where only points at the power limit were measured?

#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/coverage.hpp"
#include "models/validation/shipped_fits.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

// The A40's stages of two networks, eight curves: at the highest clock the power limit holds all of
// them, and one point there leaves open which clock is in effect. As in
// coverage_test.cpp a row is suspect below 70 %.
TEST(Coverage, HoldsOfKernelsAtThePowerLimit) {
  const GpuSpec spec = load_gpu_spec("a40");
  Sweep sweep = read_sweep(source_dir() / "docs/examples/gpt3-175b-a40.csv", spec);
  const auto from_one_point = [&] {
    return measure_coverage(spec, sweep, {.points = {1}, .captures = false}).front();
  };
  const Covered four_curves = from_one_point().plans;
  for (SweepKernel& kernel :
       read_sweep(source_dir() / "docs/examples/bloom-176b-a40.csv", spec).kernels) {
    kernel.name = "bloom " + kernel.name;
    sweep.kernels.push_back(std::move(kernel));
  }
  const CoverageRow row = from_one_point();
  EXPECT_GE(row.plans.count, 100U);
  for (const double share : {row.cells.time, row.cells.energy, row.plans.time, row.plans.energy})
    EXPECT_GE(share, 0.70);
  constexpr double percent_of_one = 100.0;
  const auto record = [&](const char* name, double share) {
    RecordProperty(name, static_cast<int>(std::lround(percent_of_one * share)));
  };
  record("four_curves_plans_energy_pct", four_curves.energy);
  record("cells_energy_pct", row.cells.energy);
  record("plans_time_pct", row.plans.time);
  record("plans_energy_pct", row.plans.energy);
}

TEST(Coverage, RefusesASweepOfOneKernel) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  Sweep sweep = read_sweep(source_dir() / shipped_fit("v100-sxm2").data, spec);
  sweep.kernels.resize(1);
  expect_error<UsageError>([&] { (void)measure_coverage(spec, sweep); }, "too few kernels");
}

}  // namespace
}  // namespace rubato
