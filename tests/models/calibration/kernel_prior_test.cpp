#include "models/calibration/kernel_prior.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/ensemble.hpp"

namespace rubato {
namespace {

// Core clocks in effect that draws of the kernel, fitted to these clocks of its truth, have where
// it was asked for the highest one.
std::vector<double> drawn_clocks(const GpuSpec& spec, const KernelCoefficients& truth,
                                 const std::vector<double>& core_mhz) {
  Sweep sweep;
  sweep.applied_clocks = true;
  SweepKernel& kernel = sweep.kernels.emplace_back();
  kernel.name = "new";
  for (const double mhz : core_mhz) {
    SweepPoint& point = kernel.points.emplace_back();
    point.clock = {MemStateId{0}, mhz};
    const OperatingPoint at = predict(spec, truth, point, true);
    point.time_s = at.time_s;
    point.power_w = at.energy_j / at.time_s;
  }
  const GpuSpec known = with_kernels(spec, sweep, {}, 0.01, 0.01);
  const auto found = std::ranges::find(known.kernels, "new", &CalibratedKernel::name);
  const auto k = static_cast<std::size_t>(found - known.kernels.begin());
  std::vector<double> clocks;
  for (std::size_t m = 0; m < known.ensemble.size(); ++m) {
    const GpuSpec member = ensemble_member(known, m);
    clocks.push_back(
        predict(member, member.kernels[k].coefficients, kernel.points.front(), true).core_mhz);
  }
  return clocks;
}

// At the power limit a kernel may run at any clock up to the one asked for: draws spread over all
// of them, and do not gather at both ends; many are where the limit holds kernels that are known.
// Far below its voltage floor the A40 throttles no kernel: a few draws go there all the same, since
// noise on the core's energy moves a draw off its clock.
TEST(KernelPrior, AtThePowerLimitTheClockInEffectIsOpen) {
  const GpuSpec spec = load_gpu_spec("a40");
  GpuSpec alone = spec;
  alone.kernels.clear();
  const KernelCoefficients truth = spec.kernels.front().coefficients;
  SweepPoint top;
  top.clock = {MemStateId{0}, 1740.0};
  const double in_effect = predict(spec, truth, top, true).core_mhz;
  ASSERT_LT(in_effect, 1700.0);
  const double floor_mhz = spec.voltage.core_mhz.front(), range = std::log(1740.0 / floor_mhz);
  std::array<int, 3> thirds{};
  int too_low = 0;
  for (const double mhz : drawn_clocks(alone, truth, {1740.0})) {
    too_low += mhz < 0.7 * floor_mhz ? 1 : 0;
    const double share = std::clamp(std::log(mhz / floor_mhz) / range, 0.0, 0.999);
    ++thirds[static_cast<std::size_t>(3.0 * share)];
  }
  EXPECT_LE(too_low, 3);
  for (const int draws : thirds) EXPECT_GE(draws, 1);
  const auto median_distance = [&](std::vector<double> clocks) {
    for (double& mhz : clocks) mhz = std::abs(std::log(mhz / in_effect));
    std::ranges::nth_element(clocks, clocks.begin() + 8);
    return clocks[8];
  };
  EXPECT_LT(median_distance(drawn_clocks(spec, truth, {1740.0})),
            0.8 * median_distance(drawn_clocks(alone, truth, {1740.0})));
  // A point below the limit says how much goes to the core.
  const auto near = [&](double mhz) { return std::abs(mhz / in_effect - 1.0) < 0.15; };
  EXPECT_GE(std::ranges::count_if(drawn_clocks(spec, truth, {1740.0, 1110.0}), near), 12);
}

TEST(KernelPrior, AKernelIsAtTheLimitOfItsPoint) {
  const GpuSpec spec = load_gpu_spec("a40");
  SweepPoint point;
  point.clock = {MemStateId{0}, 1740.0};
  EXPECT_FALSE(is_at_limit(spec, point));
  const double held_w = spec.power_limit.regulated_frac * spec.power_limit.limit_w;
  point.power_w = held_w;
  EXPECT_TRUE(is_at_limit(spec, point));
  point.power_w = 0.98 * held_w;
  EXPECT_TRUE(is_at_limit(spec, point));
  point.power_w = 0.95 * held_w;
  EXPECT_FALSE(is_at_limit(spec, point));
  point.power_cap_w = 0.95 * spec.power_limit.limit_w;
  EXPECT_TRUE(is_at_limit(spec, point));
  point.cap_assumed = true;
  EXPECT_FALSE(is_at_limit(spec, point));
}

// An epoch that waits for its input: the power limit holds its busy part, and its mean power is
// less. Fitted to every second limit, the power under the others follows.
TEST(KernelPrior, WhatWaitsInBetweenIsHeldBelowTheLimit) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  double sum = 0.0;
  int errors = 0;
  for (const CalibratedKernel& known : spec.kernels) {
    const auto epoch = [&](double limit_w) {
      SweepPoint point;
      point.power_cap_w = limit_w;
      const OperatingPoint busy = predict(spec, known.coefficients, point, false);
      SweepPoint top = point;
      top.power_cap_w = spec.power_limit.max_w;
      const double waits_s = 0.6 * predict(spec, known.coefficients, top, false).time_s;
      const double waits_w = waiting_power_w(spec, spec.mem_states[0], busy.core_mhz);
      point.time_s = busy.time_s + waits_s;
      point.power_w = (busy.energy_j + waits_w * waits_s) / *point.time_s;
      return point;
    };
    Sweep sweep;
    sweep.applied_clocks = false;
    sweep.kernels.push_back(
        {.name = "epoch", .points = {epoch(300.0), epoch(200.0), epoch(100.0)}});
    const KernelCoefficients fitted = fit_kernels(spec, sweep).front().coefficients;
    for (const double limit_w : {250.0, 150.0, 125.0}) {
      const SweepPoint left_out = epoch(limit_w);
      const OperatingPoint found = predict(spec, fitted, left_out, false);
      sum += std::abs(found.energy_j / found.time_s / left_out.power_w.value() - 1.0);
      ++errors;
    }
  }
  EXPECT_LT(sum / errors, 0.04);
}

}  // namespace
}  // namespace rubato
