#include "models/kernel/model.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/kernel/coefficients.hpp"
#include "models/table/gpu_model.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

const GpuSpec& spec() {
  static const GpuSpec loaded = load_gpu_spec("rtx-3080-ti");
  return loaded;
}

// A GPU on which every formula can be worked out by hand.
GpuSpec simple_spec() {
  GpuSpec s = spec();
  s.mem_states = {{.name = "auto",
                   .mem_mhz = 1000.0,
                   .boost_mhz = 2000.0,
                   .max_core_mhz = {},
                   .bandwidth_gbs = 100.0,
                   .base_power_w = 50.0,
                   .voltage_scale = 1.0}};
  s.core = {.min_mhz = 100.0,
            .max_mhz = 2000.0,
            .step_mhz = 100.0,
            .requested_mhz = {},
            .effective_mhz = {}};
  s.default_clock = {MemStateId{0}, {}};
  s.voltage = {{1000.0, 2000.0}, {1.0, 2.0}};
  s.shared = {.leakage_w = 10.0,
              .clock_w_per_mhz = 0.01,
              .dram_nj_per_byte = 1.0,
              .crossbar_bytes_per_cycle = 1e6,
              .bandwidth_exponent = 6.0,
              .overlap_exponent = 2.0};
  s.power_limit = {.limit_w = 300.0, .min_w = 100.0, .max_w = 400.0, .regulated_frac = 1.0};
  return s;
}

TEST(KernelModel, TimeAndEnergyByHand) {
  const GpuSpec s = simple_spec();
  // 3 ms of core time and 4 ms of DRAM time meet at sqrt(9 + 16) = 5 ms with exponent 2.
  const KernelCoefficients kernel{.core_cycles = 3e6,
                                  .dram_bytes = 4e8,
                                  .fixed_s = 1e-3,
                                  .core_j = 0.2,
                                  .limit_scale = 1.0,
                                  .overlap_scale = 1.0};
  const OperatingPoint point = unlimited_point(clock_state(s, s.mem_states[0], 1000.0), kernel);
  EXPECT_NEAR(point.time_s, 6e-3, 1e-9);
  // (50 + 10 + 0.01 x 1000) W x 6 ms + 0.2 J + 0.4 J at V = 1.
  EXPECT_NEAR(point.energy_j, 70.0 * 6e-3 + 0.6, 1e-6);
  EXPECT_NEAR(relative_voltage(s, s.mem_states[0], 1500.0), 1.5, 1e-12);
}

TEST(KernelModel, ThePowerLimitHoldsTheBoardAtTheLimit) {
  const GpuSpec s = simple_spec();
  const KernelCoefficients hungry{.core_cycles = 1e9,
                                  .dram_bytes = 1.0,
                                  .fixed_s = 1e-9,
                                  .core_j = 150.0,
                                  .limit_scale = 1.0,
                                  .overlap_scale = 1.0};
  const OperatingPoint point = operating_point(s, hungry, {MemStateId{0}, {}}, 300.0);
  EXPECT_TRUE(point.power_limited);
  EXPECT_LT(point.core_mhz, 2000.0);
  EXPECT_NEAR(point.energy_j / point.time_s, 300.0, 1e-6);
  // A request below the limited clock is not limited.
  EXPECT_FALSE(operating_point(s, hungry, {MemStateId{0}, 500.0}, 300.0).power_limited);
}

TEST(KernelModel, ClampsAndMapsClocks) {
  const auto effective = [](std::string_view label) {
    return effective_core_mhz(spec(), parse_clock_pair(spec(), label));
  };
  EXPECT_EQ(effective("405/2100"), 420.0);  // the driver holds the core at low memory clock
  EXPECT_GT(effective("9501/210"), 225.0);  // the lowest request acts like about 240 MHz
  EXPECT_EQ(effective("9501/1470"), 1470.0);
  EXPECT_EQ(effective("9501/2100"), effective("9501/auto"));  // the boost ceiling
}

// Laws over all kernels, clocks and limits, not only the fitted points.
RC_GTEST_PROP(KernelModel, PhysicalLawsHold, ()) {
  static const Trace trace = load_trace("gpt3-xl");
  const double limit_w = *rc::gen::inRange(100, 400);
  static const GpuModel model(spec(), trace);
  const auto kernel =
      model.coefficients(id_at<KernelId>(*rc::gen::inRange<std::size_t>(0, trace.kernels.size())));
  const auto mem = id_at<MemStateId>(*rc::gen::inRange<std::size_t>(0, spec().mem_states.size()));
  const double core_mhz = 210.0 + 15.0 * *rc::gen::inRange(0, 126);
  const OperatingPoint low = operating_point(spec(), kernel, {mem, core_mhz}, limit_w);
  const OperatingPoint high = operating_point(spec(), kernel, {mem, core_mhz + 15.0}, limit_w);
  RC_ASSERT(std::isfinite(low.time_s) && low.time_s > 0.0 && low.energy_j > 0.0);
  RC_ASSERT(high.time_s <= low.time_s * (1.0 + 1e-12));  // a higher request is never slower
  RC_ASSERT(high.core_mhz >= low.core_mhz * (1.0 - 1e-9));
  RC_ASSERT(low.core_mhz <= effective_core_mhz(spec(), {mem, core_mhz}));
  if (low.power_limited && low.core_mhz > spec().core.min_mhz * 1.001) {
    const double regulated_w = limit_w * spec().power_limit.regulated_frac * kernel.limit_scale;
    RC_ASSERT(std::abs(low.energy_j / low.time_s / regulated_w - 1.0) < 1e-6);
  }
  const OperatingPoint looser = operating_point(spec(), kernel, {mem, core_mhz}, limit_w * 1.1);
  RC_ASSERT(looser.time_s <= low.time_s * (1.0 + 1e-12));  // more power is never slower
}

TEST(Coefficients, FollowTheWorkWhenAKernelIsCarriedOver) {
  const Trace whole = load_trace("gpt3-xl");
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.batch = 20;
  const Trace half = generate_training_step(shape).trace;
  const GpuModel full_model(spec(), whole), half_model(spec(), half);
  for (const std::size_t k : {std::size_t{2}, std::size_t{11}}) {  // a GEMM, a streaming kernel
    const auto id = id_at<KernelId>(k);
    EXPECT_NEAR(half_model.coefficients(id).core_cycles / full_model.coefficients(id).core_cycles,
                0.5, 0.01);
    EXPECT_NEAR(half_model.coefficients(id).core_j / full_model.coefficients(id).core_j, 0.5, 0.01);
    EXPECT_EQ(half_model.coefficients(id).fixed_s, full_model.coefficients(id).fixed_s);
  }
}

TEST(Coefficients, WhatAGemmReadsTwiceFollowsItsFlops) {
  const Trace whole = load_trace("gpt3-xl");
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.batch = 1;
  const Trace small = generate_training_step(shape).trace;
  const GpuModel whole_model(spec(), whole), small_model(spec(), small);
  const KernelId weight_gradient{
      27};  // its output, two thirds of a small batch's bytes, does not shrink
  const auto reread = [&](const GpuModel& model, const Trace& trace) {
    return model.coefficients(weight_gradient).dram_bytes -
           *trace.kernels[index(weight_gradient)].dram_bytes;
  };
  EXPECT_GT(reread(whole_model, whole), 0.0);
  EXPECT_NEAR(reread(small_model, small) * 40.0 / reread(whole_model, whole), 1.0, 1e-9);
}

TEST(Coefficients, AGemmLosesSmsInItsLastWave) {
  EXPECT_DOUBLE_EQ(wave_efficiency({128 * 80, 128, 64, 1}, 80.0), 1.0);
  EXPECT_DOUBLE_EQ(wave_efficiency({128 * 81, 128, 64, 1}, 80.0), 81.0 / 160.0);
  EXPECT_DOUBLE_EQ(wave_efficiency({64, 64, 64, 40}, 80.0), 0.5);
}

TEST(FillTable, IsTheSameForEveryCell) {
  const Trace trace = load_trace("gpt3-xl");
  const GpuModel model(spec(), trace);
  const ClockGrid grid = make_clock_grid(spec(), "paper");
  const auto cells = evaluate_all(model, grid);
  ASSERT_EQ(cells.size(), 46U * 66U);
  for (std::size_t i = 0; i < cells.size(); i += 7) {
    const OperatingPoint point =
        model.evaluate(id_at<KernelId>(i / 66), grid[id_at<ClockId>(i % 66)]);
    EXPECT_EQ(cells[i].time_s, point.time_s);
    EXPECT_EQ(cells[i].energy_j, point.energy_j);
  }
}

}  // namespace
}  // namespace rubato
