// What a power log makes of a GPU's spec, on runs whose truth is known.

#include "models/validation/logged_power.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/anchor.hpp"
#include "tests/simulated_captures.hpp"

namespace rubato {
namespace {

// The truth draws `factor` times the core energy.
KnownModel drawing(double factor) {
  KnownModel known;
  for (CalibratedKernel& kernel : known.truth.kernels) kernel.coefficients.core_j *= factor;
  return known;
}

// Launches that a profiler lost drew power all the same.
CaptureNoise complete() {
  CaptureNoise noise;
  noise.lost = 0.0;
  return noise;
}

LoggedRun logged(const KnownModel& known, const SimulatedRun& run, const ClockPair& clock) {
  return with_logged_power(known.frame, run.capture, 0, clock, run.log,
                           placed_log(run.capture, 0, known.frame.title, run.log, std::nullopt));
}

// Energy of a step at a clock, its kernels captured at another one.
double step_j(const KnownModel& known, const GpuSpec& spec, const ClockPair& captured,
              const ClockPair& clock) {
  double sum_j = 0.0;
  for (const std::uint32_t k : known.step) {
    const double limit_w = spec.power_limit.limit_w;
    const KernelCoefficients kernel =
        anchored(spec, known.kernels[k], {captured, known.point(k, captured).time_s, limit_w})
            .coefficients;
    sum_j += operating_point(spec, kernel, clock, limit_w).energy_j;
  }
  return sum_j;
}

double true_step_j(const KnownModel& known, const ClockPair& clock) {
  double sum_j = 0.0;
  for (const std::uint32_t k : known.step) sum_j += known.point(k, clock).energy_j;
  return sum_j;
}

TEST(LoggedPower, StepsDrawWhatWasRead) {
  for (const double factor : {0.6, 0.8, 1.0, 1.2}) {
    const KnownModel known = drawing(factor);
    const ClockPair clock = parse_clock_pair(known.frame, "1593/1290"),
                    low = parse_clock_pair(known.frame, "1593/1005");
    const LoggedRun found = logged(known, known.run(clock, 7, complete()), clock);
    const double truth_j = true_step_j(known, clock);
    EXPECT_NEAR(step_j(known, found.spec, clock, clock) / truth_j, 1.0, 0.02) << factor;
    // Some times are guessed splits, so plans are off by a little; without the log by more.
    const double truth_pct = 100.0 * (true_step_j(known, low) / truth_j - 1.0);
    const auto change_pct = [&](const GpuSpec& spec) {
      return 100.0 * (step_j(known, spec, clock, low) / step_j(known, spec, clock, clock) - 1.0);
    };
    EXPECT_NEAR(change_pct(found.spec), truth_pct, 4.0) << factor;
  }
}

// Between steps a GPU may rest, or work for somebody else: nothing of the steps' energies moves.
TEST(LoggedPower, WhatIsReadOutsideStepsChangesNothing) {
  const KnownModel known;
  const ClockPair clock = parse_clock_pair(known.frame, "1593/1290");
  const double usual_j =
      step_j(known, logged(known, known.run(clock, 7, complete()), clock).spec, clock, clock);
  for (const double pause_w : {40.0, 200.0}) {
    CaptureNoise noise = complete();
    noise.pause_w = pause_w;
    const GpuSpec found = logged(known, known.run(clock, 7, noise), clock).spec;
    EXPECT_NEAR(step_j(known, found, clock, clock) / usual_j, 1.0, 0.003) << pause_w;
    const MemState& mem = found.mem_states.front();
    EXPECT_NEAR(waiting_power_w(found, mem, 1290.0), waiting_power_w(known.frame, mem, 1290.0),
                12.0)
        << pause_w;
  }
}

// A wait inside steps is read, and is what waiting takes: of the kernels nothing moves.
TEST(LoggedPower, WaitingIsWhatWasReadInsideSteps) {
  const KnownModel known;
  const ClockPair clock = parse_clock_pair(known.frame, "1593/1290");
  for (const double pause_w : {50.0, 130.0}) {
    CaptureNoise noise = complete();
    noise.pause_w = pause_w;
    SimulatedRun run = known.run(clock, 7, noise);
    for (std::size_t s = 0; s + 1 < run.capture.steps.size(); ++s)
      run.capture.steps[s].end_ns = run.capture.steps[s + 1].start_ns;
    const GpuSpec found = logged(known, run, clock).spec;
    EXPECT_NEAR(waiting_power_w(found, found.mem_states.front(), 1290.0), pause_w, 3.0);
    EXPECT_NEAR(step_j(known, found, clock, clock) / true_step_j(known, clock), 1.0, 0.02);
  }
}

// At the power limit all readings are alike, but the clocks tell how far kernels are held back.
TEST(LoggedPower, AtThePowerLimitTheClockThatWasSeenCounts) {
  for (const double factor : {1.8, 2.4}) {
    const KnownModel known = drawing(factor);
    const ClockPair clock = known.frame.default_clock;
    const SimulatedRun run = known.run(clock, 7, complete());
    EXPECT_EQ(logged_clock(run.log, &known.frame), "auto/1410");
    const LoggedRun found = logged(known, run, clock);
    double true_sum = 0.0, found_sum = 0.0, all_s = 0.0;
    const double limit_w = found.spec.power_limit.limit_w;
    for (const std::uint32_t k : known.step) {
      const OperatingPoint at = known.point(k, clock);
      const KernelCoefficients kernel =
          anchored(found.spec, known.kernels[k], {clock, at.time_s, limit_w}).coefficients;
      true_sum += at.time_s * at.core_mhz;
      found_sum += at.time_s * operating_point(found.spec, kernel, clock, limit_w).core_mhz;
      all_s += at.time_s;
    }
    EXPECT_NEAR(found_sum / true_sum, 1.0, 0.006) << factor << ": " << true_sum / all_s;
    EXPECT_LT(true_sum / all_s, 1395.0) << "the limit holds nothing back";
  }
}

// What was learned is kept with the spec.
TEST(LoggedPower, ASpecKeepsWhatWasLogged) {
  const KnownModel known;
  const ClockPair clock = parse_clock_pair(known.frame, "1593/1290");
  SimulatedRun run = known.run(clock, 7, complete());
  for (std::size_t s = 0; s + 1 < run.capture.steps.size(); ++s)
    run.capture.steps[s].end_ns = run.capture.steps[s + 1].start_ns;
  const GpuSpec found = logged(known, run, clock).spec;
  ASSERT_TRUE(found.waiting);
  ASSERT_FALSE(found.logged.empty());
  const std::string text = to_json(found);
  EXPECT_EQ(to_json(parse_gpu_spec(text, "spec.json")), text);
}

// An A40 blocked on communication drew 70.38 W at clocks that are not said (Perseus), an idle
// A100 PCIe 44.5 to 67 W (EnergAIzer). Elsewhere waiting is what busy kernels leave as idle power.
TEST(WaitingPower, IsTheMeasuredOneWhereThereIsOne) {
  const auto waiting_w = [](const GpuSpec& spec, double mhz) {
    return waiting_power_w(spec, spec.mem_states.front(), mhz);
  };
  const GpuSpec a40 = load_gpu_spec("a40");
  EXPECT_DOUBLE_EQ(waiting_w(a40, 300.0), 70.38);
  EXPECT_DOUBLE_EQ(waiting_w(a40, 1740.0), 70.38);
  for (const char* name : {"a100-pcie-40gb", "a100-pcie-80gb"}) {
    const GpuSpec spec = load_gpu_spec(name);
    EXPECT_NEAR(waiting_w(spec, 210.0), 44.5, 0.5);
    EXPECT_NEAR(waiting_w(spec, 990.0), 48.4, 0.7);
    EXPECT_NEAR(waiting_w(spec, 1410.0), 67.34, 0.7);
  }
  const GpuSpec sxm = load_gpu_spec("a100-sxm4-80gb");
  EXPECT_DOUBLE_EQ(waiting_w(sxm, 1200.0), idle_power_w(sxm, sxm.mem_states.front(), 1200.0));
}

TEST(LoggedPower, ReadingsBeyondTheLimitAreSaid) {
  const KnownModel known;
  SimulatedRun run = known.run(parse_clock_pair(known.frame, "1593/1290"), 7);
  EXPECT_FALSE(beyond_limit(run.log, known.frame));
  for (PowerSample& sample : run.log.samples) sample.power_w = 477.0;
  const auto said = beyond_limit(run.log, known.frame);
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("477 W, beyond the limit of 400 W"), std::string::npos) << *said;
}

// A GPU at its limit of 400 W as the field of instantaneous power has it: some windows of 25 ms are
// above the limit, as an H200's were by 12 to 27 % (driver 580.159, 2026-11-27).
TEST(LoggedPower, InstantReadingsPassTheLimitNowAndThen) {
  const KnownModel known;
  PowerLog log;
  log.instantaneous = true;
  for (int i = 0; i < 40; ++i) {
    constexpr std::array<double, 5> share{0.17, 0.9, 0.99, 1.02, 1.12};
    log.samples.push_back({0.1 * i, 400.0 * share[static_cast<std::size_t>(i) % 5], {}, {}});
  }
  EXPECT_FALSE(beyond_limit(log, known.frame));
  log.instantaneous = false;
  EXPECT_TRUE(beyond_limit(log, known.frame));
  log.instantaneous = true;
  for (PowerSample& sample : log.samples) sample.power_w *= 1.2;
  EXPECT_TRUE(beyond_limit(log, known.frame));
}

}  // namespace
}  // namespace rubato
