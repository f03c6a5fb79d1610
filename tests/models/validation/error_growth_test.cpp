#include "models/validation/error_growth.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "models/validation/model_errors.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

// Nine in ten are held, the tenth is not.
TEST(ErrorGrowth, HoldsNineInTen) {
  std::vector<FarError> errors;
  for (int i = 1; i <= 10; ++i)
    errors.push_back({.beyond = 0.1, .error = (i % 2 == 0 ? 0.01 : -0.01) * i});
  const double growth = growth_of(errors, 0.03);
  EXPECT_NEAR(growth, (0.09 / 0.03 - 1.0) / 0.1, 1e-9);
  EXPECT_EQ(growth_of(errors, 0.2), 0.0);  // no wider than at fitted clocks
  for (FarError& error : errors) error.beyond = 0.2;
  EXPECT_NEAR(growth_of(errors, 0.03), growth / 2.0, 1e-9);
}

TEST(ErrorGrowth, IsOfEachEndAndQuantity) {
  GpuSpec spec = load_gpu_spec("v100-sxm2");
  spec.fitted_range = FittedRange{.min_core_mhz = 800.0, .max_core_mhz = 1400.0};
  spec.fit_errors = {{"below_fitted_time_growth", 20.0},   {"below_fitted_energy_growth", 40.0},
                     {"below_fitted_tested", 10.0},        {"above_fitted_time_growth", 60.0},
                     {"above_fitted_energy_growth", 80.0}, {"above_fitted_tested", 10.0}};
  write_errors({}, spec);
  EXPECT_EQ(growth_at(spec, 800.0).time, 1.0);
  EXPECT_EQ(growth_at(spec, 1400.0).energy, 1.0);
  const double down = std::log(800.0 / 700.0), up = std::log(1500.0 / 1400.0);
  EXPECT_NEAR(growth_at(spec, 700.0).time, 1.0 + 20.0 * down, 1e-9);
  EXPECT_NEAR(growth_at(spec, 700.0).energy, 1.0 + 40.0 * down, 1e-9);
  EXPECT_NEAR(growth_at(spec, 1500.0).time, 1.0 + 60.0 * up, 1e-9);
  EXPECT_NEAR(growth_at(spec, 1500.0).energy, 1.0 + 80.0 * up, 1e-9);
}

// What is known of clocks near by is no news of those far away.
TEST(ErrorGrowth, IsAtLeastTypicalWhereNothingWasTested) {
  GpuSpec spec = load_gpu_spec("v100-sxm2");
  spec.fitted_range = FittedRange{.min_core_mhz = 800.0, .max_core_mhz = 1400.0};
  spec.fit_errors.clear();
  write_errors({}, spec);
  const double unknown = growth_at(spec, 400.0).time - 1.0;
  EXPECT_GT(unknown, 0.0);
  EXPECT_NEAR(growth_at(spec, 200.0).time - 1.0, 2.0 * unknown, 1e-9);
  spec.fit_errors = {{"below_fitted_time_growth", 0.0},
                     {"below_fitted_energy_growth", 1000.0},
                     {"below_fitted_tested", std::log(2.0)}};
  write_errors({}, spec);
  EXPECT_EQ(growth_at(spec, 400.0).time, 1.0);
  EXPECT_NEAR(growth_at(spec, 200.0).time - 1.0, unknown, 1e-9);
  EXPECT_NEAR(growth_at(spec, 200.0).energy - 1.0, 1000.0 * std::log(4.0), 1e-6);
  spec.fitted_range.reset();
  EXPECT_EQ(growth_at(spec, 200.0).energy, 1.0);
}

// The errors of a GPU that was never fitted are a guess for all of its clocks.
TEST(ErrorGrowth, IsOfLearnedErrorsOnly) {
  GpuSpec spec = load_gpu_spec("h100-sxm5");
  spec.fitted_range->max_core_mhz = 1410.0;
  EXPECT_EQ(growth_at(spec, 300.0).time, 1.0);
  EXPECT_EQ(growth_at(spec, 1980.0).energy, 1.0);
  write_errors({}, spec);
  EXPECT_GT(growth_at(spec, 300.0).time, 1.0);
  EXPECT_GT(growth_at(spec, 1980.0).energy, 1.0);
}

// A sweep that the model follows but at its lowest clocks, where all takes half as long again at
// the same power: only there errors outgrow those of fitted clocks.
TEST(ErrorGrowth, IsLearnedWhereTheModelFails) {
  GpuSpec spec = load_gpu_spec("v100-sxm2");
  Sweep sweep = read_sweep(measured_data("v100_33workloads/sweep.csv"), spec);
  sweep.kernels.resize(6);
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    for (SweepPoint& point : sweep.kernels[k].points) {
      const OperatingPoint at = predict(spec, spec.kernels.at(k).coefficients, point, true);
      point.time_s = at.time_s * (*point.clock.core_mhz < 900.0 ? 1.5 : 1.0);
      point.power_w = at.energy_j / at.time_s;
    }
  }
  spec.fit_errors.clear();
  const ModelErrors errors{.shared = {0.02, 0.02}, .own = {0.02, 0.02}};
  write_errors(errors, spec);
  learn_error_growth(spec, sweep, errors, {.curve_core_mhz = {757.0, 952.0, 1207.0, 1530.0}}, spec);
  EXPECT_GT(spec.fit_errors.at("below_fitted_time_growth"), 10.0);
  EXPECT_GT(spec.fit_errors.at("below_fitted_energy_growth"), 10.0);
  EXPECT_LT(spec.fit_errors.at("above_fitted_time_growth"), 2.0);
  EXPECT_LT(spec.fit_errors.at("above_fitted_energy_growth"), 2.0);
  for (const char* end : {"below_fitted_tested", "above_fitted_tested"}) {
    EXPECT_GT(spec.fit_errors.at(end), 0.05);
    EXPECT_LT(spec.fit_errors.at(end), 0.5);
  }
}

}  // namespace
}  // namespace rubato
