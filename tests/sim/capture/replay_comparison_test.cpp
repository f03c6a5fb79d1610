#include "sim/capture/replay_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/timeline/graph.hpp"
#include "tests/captures.hpp"
#include "tests/sim/capture/small_capture.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

TEST(Verdict, FromErrorAndBar) {
  EXPECT_EQ(verdict_of(std::optional<ErrorBar>{}), Verdict::not_predicted);
  EXPECT_EQ(verdict_of(ErrorBar{0.05, 0.04}), Verdict::within);
  EXPECT_EQ(verdict_of(ErrorBar{-0.05, 0.06}), Verdict::undecided);
  EXPECT_EQ(verdict_of(ErrorBar{-0.2, 0.09}), Verdict::off);
  EXPECT_EQ(verdict_of(ErrorBar{-0.2, 0.11}), Verdict::undecided);
  EXPECT_EQ(verdict_of(ErrorBar{0.3, {}}), Verdict::off);
}

// What the model says of a kernel alone at the captured clock.
std::int64_t model_ns(const SmallCapture& made, KernelId kernel) {
  const auto found = find_coefficients(made.spec, made.capture.kernels[index(kernel)]);
  return std::llround(1e9 * operating_point(made.spec, found->coefficients, made.clock,
                                            made.spec.power_limit.limit_w)
                                .time_s);
}

TEST(ReplayComparison, RowsStepsAndCoverageByDefinition) {
  SmallCapture made;
  const std::int64_t gemm_ns = model_ns(made, made.gemm);
  made.add(0, made.gemm, 0, gemm_ns);                              // as the model says
  made.add(0, made.copy, gemm_ns, 2 * model_ns(made, made.copy));  // twice as slow
  const std::int64_t second_ns = made.capture.launches[1].end_ns() + 1'000'000;
  made.add(0, made.unknown, second_ns, 500'000);
  for (CapturedLaunch& launch : made.capture.launches) launch.step = 0;
  made.capture.launches[2].step = 1;
  made.capture.steps = {{"a", 0, second_ns}, {"b", second_ns, second_ns + 500'000}};
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const ReplayComparison result = compare(replay, run_all(replay, made.clock));
  const auto row = [&](KernelClass kind) {
    return *std::ranges::find(result.classes, kind, &ReplayRow::kind);
  };
  EXPECT_NEAR(row(KernelClass::gemm).time_error->value, 0.0, 1e-5);
  EXPECT_NEAR(row(KernelClass::elementwise).time_error->value, -0.5, 1e-5);
  EXPECT_FALSE(row(KernelClass::other).time_error);
  EXPECT_NEAR(result.coverage.anchored_s, 500e-6, 1e-12);
  EXPECT_NEAR(result.coverage.total_s(),
              1e-9 * static_cast<double>(second_ns - 1'000'000 + 500'000), 1e-12);
  ASSERT_EQ(result.steps.size(), 2U);
  EXPECT_EQ(result.steps[0].launches, 2U);
  EXPECT_NEAR(result.steps[1].predicted_s, 500e-6, 1e-12);
  EXPECT_NEAR(result.totals.reproduced_s, result.totals.captured_s, 1e-9);
  // The host's gap of 1 ms stays.
  EXPECT_NEAR(result.totals.predicted_s,
              1e-9 * static_cast<double>(gemm_ns + model_ns(made, made.copy)) + 1.5e-3, 1e-8);
}

// A collective that waited ten times as long as it takes says nothing about the model.
TEST(ReplayComparison, WaitingOfCollectivesIsNotTheModelsError) {
  SmallCapture made;
  const std::int64_t gemm_ns = model_ns(made, made.gemm), copy_ns = model_ns(made, made.copy),
                     reduce_ns = model_ns(made, made.reduce);
  made.add(0, made.gemm, 0, gemm_ns);
  made.add(0, made.copy, gemm_ns, 2 * copy_ns);
  made.add(0, made.unknown, gemm_ns + 2 * copy_ns, 1000);
  made.add(0, made.reduce, gemm_ns + 2 * copy_ns + 1000, 10 * reduce_ns);
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const ReplayComparison result = compare(replay, run_all(replay, made.clock));
  const ReplayRow& collectives =
      *std::ranges::find(result.classes, KernelClass::communication, &ReplayRow::kind);
  ASSERT_TRUE(collectives.time_error);
  EXPECT_LT(collectives.time_error->value, -0.5);
  EXPECT_EQ(verdict_of(collectives), Verdict::waits);
  EXPECT_EQ(name_of(verdict_of(collectives)), "includes waiting");
  const double predicted = static_cast<double>(gemm_ns + copy_ns),
               captured = static_cast<double>(gemm_ns + 2 * copy_ns);
  const ReplayRow& compute = result.compute;
  EXPECT_EQ(compute.launches, 3U);
  EXPECT_NEAR(compute.compared_s, 1e-9 * captured, 1e-12);
  EXPECT_NEAR(compute.captured_s, 1e-9 * (captured + 1000), 1e-12);
  ASSERT_TRUE(compute.time_error);
  EXPECT_NEAR(compute.time_error->value, predicted / captured - 1.0, 1e-5);
  // By definition, from the two kernels that are compared.
  const double ratio = predicted / captured;
  const double gemm = static_cast<double>(gemm_ns) * (1.0 - ratio),
               copy = static_cast<double>(copy_ns) * (1.0 - 2.0 * ratio);
  EXPECT_NEAR(*compute.time_error->half_width,
              1.645 * std::sqrt(2.0 * (gemm * gemm + copy * copy)) / captured, 1e-5);
  // A message whose ranks nobody knows is not predicted at all.
  made.capture.kernels[index(made.reduce)].collective.reset();
  made.capture.kernels[index(made.reduce)].flops = 0.0;
  made.capture.kernels[index(made.reduce)].dram_bytes = 1e8;
  const CaptureReplay unknown(made.capture, made.spec, made.clock);
  EXPECT_FALSE(unknown.source(made.reduce));
}

TEST(ReplayComparison, EnergyAndClassPowerFromALog) {
  SmallCapture made;
  // Uneven spells, so that the log fits at one shift only.
  std::int64_t now_ns = 0;
  for (int i = 0; i < 30; ++i) {
    const KernelId kernel = i % 2 == 0 ? made.gemm : made.copy;
    const std::int64_t busy_ns = 40'000'000 + 7'000'000 * ((i * i) % 11);
    made.add(0, kernel, now_ns, busy_ns);
    now_ns += busy_ns + 30'000'000 + 9'000'000 * ((i * 5) % 7);
  }
  made.add(1, made.reduce, 45'000'000, 20'000);  // too short for any sample to see
  for (CapturedLaunch& launch : made.capture.launches) launch.step = 0;
  made.capture.steps = {{"a", 0, now_ns}};
  PowerLog log;
  const auto power_at = [&](double s) {
    for (const CapturedLaunch& launch : made.capture.launches) {
      if (s >= 1e-9 * static_cast<double>(launch.start_ns) &&
          s < 1e-9 * static_cast<double>(launch.end_ns()))
        return launch.kernel == made.gemm ? 380.0 : 250.0;
    }
    return 80.0;
  };
  constexpr double shift_s = 0.25, period_s = 0.002;
  for (double s = -0.1; s < 1e-9 * static_cast<double>(now_ns) + 0.1; s += period_s)
    log.samples.push_back({s - shift_s, power_at(s), {}, {}});
  PowerEvidence power{&log, {}, {}, 0};
  power.alignment = align(busy_curve(made.capture, 0, 0), log, power.sensor, 0.0);
  EXPECT_NEAR(power.alignment.shift_s, shift_s, 2.0 * period_s);

  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const ReplayComparison result = compare(replay, run_all(replay, made.clock), power);
  double expected_j = 0.0;
  for (double s = 0.5e-4; s < replay.captured_makespan_s(); s += 1e-4)
    expected_j += 1e-4 * power_at(s);
  ASSERT_TRUE(result.measured);
  EXPECT_NEAR(result.measured->energy_j / expected_j, 1.0, 0.01);
  EXPECT_NEAR(result.measured->coverage, 1.0, 1e-9);
  EXPECT_NEAR(result.steps[0].measured->energy_j, result.measured->energy_j, 1e-9);
  ASSERT_EQ(result.classes.size(), 3U);
  for (const ReplayRow& row : result.classes) {
    if (row.kind == KernelClass::communication) {
      EXPECT_FALSE(row.measured_power_w);
    } else {
      EXPECT_NEAR(*row.measured_power_w, row.kind == KernelClass::gemm ? 380.0 : 250.0, 10.0);
    }
  }
  EXPECT_NEAR(*result.measured_idle->power_w, 80.0, 10.0);
}

// Real captures: their own clocks give their makespans back.
TEST(ReplayOfRealCaptures, ReproducesTheMakespan) {
  struct Case {
    const char *file, *gpu;
    double most_error_frac;
  };
  for (const Case& c : {Case{"traces/kineto_a100_ddp2_resnet.json.gz", "a100-sxm4-80gb", 1e-4},
                        Case{"traces/kineto_h100_qwen_fwd.json.gz", "h100-sxm5", 1e-4},
                        Case{"traces/nsys_h100_2gpu_dit.sqlite", "h100-sxm5", 1e-4}}) {
    const Capture capture = import_capture(captured(c.file));
    const GpuSpec spec = load_gpu_spec(c.gpu);
    const CaptureReplay replay(capture, spec, spec.default_clock);
    const CaptureRun result = replay.run(spec.default_clock, DurationSource::captured);
    EXPECT_NEAR(result.makespan_s / replay.captured_makespan_s(), 1.0, c.most_error_frac) << c.file;
  }
}

}  // namespace
}  // namespace rubato
