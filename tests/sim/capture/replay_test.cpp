#include "sim/capture/replay.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "sim/sharing/shared_gpu.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/small_capture.hpp"

namespace rubato {
namespace {

// Uses that fit are not drawn out; two that each want everything take twice as long.
TEST(Stretch, ByDefinition) {
  const auto of = [](std::vector<double> uses) { return stretch(uses); };
  EXPECT_DOUBLE_EQ(of({}), 1.0);
  EXPECT_DOUBLE_EQ(of({1.0}), 1.0);
  EXPECT_DOUBLE_EQ(of({0.5, 0.5}), 1.0);
  EXPECT_NEAR(of({1.0, 1.0}), 2.0, 1e-9);
  EXPECT_NEAR(of({1.0, 1.0, 1.0}), 3.0, 1e-9);
  // 1 / s + 0.5 / (0.5 + 0.5 s) = 1  =>  s^2 - s - 1 = 0, the golden ratio.
  EXPECT_NEAR(of({1.0, 0.5}), 0.5 * (1.0 + std::sqrt(5.0)), 1e-9);
}

TEST(Streams, OneStreamIsTheModelLaunchAfterLaunch) {
  SmallCapture made;
  made.add(0, made.gemm, 0, 100'000);
  made.add(0, made.copy, 100'000, 50'000);
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const CaptureRun model = replay.run(made.clock, DurationSource::model);
  double time_s = 0.0, energy_j = 0.0;
  for (const Kernel& kernel : {made.capture.kernels[0], made.capture.kernels[1]}) {
    const OperatingPoint point =
        operating_point(made.spec, find_coefficients(made.spec, kernel)->coefficients, made.clock,
                        made.spec.power_limit.limit_w);
    time_s += point.time_s;
    energy_j += point.energy_j;
  }
  EXPECT_NEAR(model.makespan_s / time_s, 1.0, 1e-9);
  EXPECT_NEAR(model.energy_j / energy_j, 1.0, 1e-9);
  EXPECT_NEAR(model.energy_over_j(0, 0.0, model.makespan_s) / energy_j, 1.0, 1e-9);
  EXPECT_NEAR(replay.run(made.clock, DurationSource::captured).makespan_s, 150e-6, 1e-12);
}

TEST(Streams, MemoryBoundKernelsOnTwoStreamsShareTheBandwidth) {
  SmallCapture made;
  made.add(0, made.copy, 0, 1'000'000);
  made.add(1, made.copy, 0, 1'000'000);
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const CaptureRun both = replay.run(made.clock, DurationSource::model);
  SmallCapture one;
  one.add(0, one.copy, 0, 1'000'000);
  const CaptureRun alone =
      CaptureReplay(one.capture, one.spec, one.clock).run(one.clock, DurationSource::model);
  EXPECT_GT(both.makespan_s / alone.makespan_s, 1.9);  // all but the launch latency doubles
  EXPECT_LE(both.makespan_s / alone.makespan_s, 2.0 + 1e-9);
}

TEST(Streams, ACollectiveRunsBesideComputeAndDoesNotFollowTheCoreClock) {
  SmallCapture made;
  made.add(0, made.gemm, 0, 3'000'000);
  made.add(1, made.reduce, 0, 2'000'000);
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const CaptureRun fast = replay.run(made.clock, DurationSource::captured);
  const CaptureRun slow =
      replay.run(parse_clock_pair(made.spec, "1593/705"), DurationSource::captured);
  EXPECT_GT(slow.launches[0].end_s, 1.5 * fast.launches[0].end_s);
  EXPECT_NEAR(slow.launches[1].end_s, fast.launches[1].end_s, 0.03 * fast.launches[1].end_s);
}

TEST(Streams, ConcurrentKernelsShareThePowerLimit) {
  SmallCapture made;
  // A GEMM that fills half the GPU, twice.
  made.capture.kernels[0].launch = LaunchShape{.grid = {54, 1, 1}, .block = {256, 1, 1}};
  made.add(0, made.gemm, 0, 1'000'000);
  made.add(1, made.gemm, 0, 1'000'000);
  const CaptureReplay free(made.capture, made.spec, made.clock);
  const CaptureReplay capped(made.capture, made.spec, made.clock, 250.0);
  const CaptureRun wide = free.run(made.clock, DurationSource::model);
  const CaptureRun tight = capped.run(made.clock, DurationSource::model);
  EXPECT_GT(tight.makespan_s, wide.makespan_s);
  EXPECT_GT(tight.power_limited_s, 0.0);
  const double limit_w = 250.0 * made.spec.power_limit.regulated_frac;
  for (const GpuPhase& phase : tight.graph.phases) EXPECT_LE(phase.power_w, limit_w * (1 + 1e-6));
}

TEST(Streams, LaunchesFollowWhatTheyWaitedFor) {
  SmallCapture made;
  made.add(0, made.gemm, 0, 1'000'000);
  made.add(1, made.reduce, 1'002'000, 500'000);
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const CaptureRun slow =
      replay.run(parse_clock_pair(made.spec, "1593/705"), DurationSource::captured);
  EXPECT_GT(slow.launches[0].end_s, 1.5e-3);
  EXPECT_NEAR(slow.launches[1].start_s - slow.launches[0].end_s, 2e-6, 1e-12);
}

TEST(Streams, TheHostsPaceIsKeptUnlessItWaitedForTheGpu) {
  SmallCapture made;
  made.add(0, made.gemm, 10'000, 40'000, 0);
  made.add(0, made.gemm, 510'000, 40'000, 500'000);   // the host was busy for 0.5 ms
  made.add(0, made.gemm, 560'000, 400'000, 520'000);  // queued
  made.add(0, made.gemm, 990'000, 100'000, 980'000);  // 20 us after the end: had waited
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  const CaptureRun slow =
      replay.run(parse_clock_pair(made.spec, "1593/705"), DurationSource::captured);
  EXPECT_NEAR(slow.launches[1].start_s, 500e-6, 1e-12);  // times count from the first start
  EXPECT_NEAR(slow.launches[3].start_s - slow.launches[2].end_s, 30e-6, 1e-12);
}

// Whatever the schedule, the captured clocks give it back.
RC_GTEST_PROP(Streams, CapturedClocksGiveTheCaptureBack, ()) {
  SmallCapture made;
  std::vector<std::int64_t> free_ns(3, 0);
  const int launches = *rc::gen::inRange(1, 40);
  for (int i = 0; i < launches; ++i) {
    const auto stream = *rc::gen::inRange<std::uint32_t>(0, 3);
    const auto kernel = *rc::gen::element(made.gemm, made.copy, made.reduce);
    const std::int64_t start =
        free_ns[stream] + *rc::gen::element<std::int64_t>(0, 1'000, 60'000, 300'000);
    // A capture without any time is refused.
    const std::int64_t duration = *rc::gen::inRange<std::int64_t>(i == 0 ? 1 : 0, 500'000);
    const bool called = *rc::gen::arbitrary<bool>();
    made.add(
        stream, kernel, start, duration,
        called ? std::optional(start - *rc::gen::inRange<std::int64_t>(0, 100'000)) : std::nullopt);
    free_ns[stream] = start + duration;
  }
  const Capture& capture = made.sorted();
  const CaptureReplay replay(capture, made.spec, made.clock);
  const CaptureRun result = replay.run(made.clock, DurationSource::captured);
  for (std::size_t i = 0; i < capture.launches.size(); ++i) {
    RC_ASSERT(std::abs(result.launches[i].start_s - replay.captured_start_s(i)) < 1e-9);
    RC_ASSERT(std::abs(result.launches[i].end_s - replay.captured_end_s(i)) < 1e-9);
  }
  double own_j = 0.0;
  for (const SimulatedLaunch& launch : result.launches) own_j += launch.energy_j;
  RC_ASSERT(own_j <= result.energy_j * (1.0 + 1e-9));
}

TEST(Streams, KernelsWithoutWorkFiguresKeepTheirCapturedTime) {
  SmallCapture made;
  made.add(0, made.unknown, 0, 123'000);
  const CaptureReplay replay(made.capture, made.spec, made.clock);
  EXPECT_FALSE(replay.source(made.unknown));
  EXPECT_NEAR(replay.run(made.clock, DurationSource::model).makespan_s, 123e-6, 1e-12);
}

TEST(Streams, RefusesAnEmptyCapture) {
  SmallCapture made;
  expect_error<DataError>([&] { (void)CaptureReplay(made.capture, made.spec, made.clock); },
                          "no launches to replay");
}

// A table of the gemm, at the captured clock and another one, by label or name.
std::shared_ptr<const NamedCells> gemm_cells(const GpuSpec& spec) {
  std::vector<std::string> notes;
  return named_cells(parse_sweep("kernel,core_mhz,time_s,power_w\n"
                                 "gemm,1110,150e-6,200\ngemm,1410,120e-6,250\n",
                                 "gemm.csv", spec),
                     spec, notes);
}

TEST(ReplayOfATable, TakesItsTimesAndPowers) {
  SmallCapture made;
  made.add(0, made.gemm, 0, 100'000);
  const CaptureReplay replay(made.capture, made.spec, made.clock, {}, gemm_cells(made.spec));
  EXPECT_EQ(replay.source(made.gemm), CoefficientSource::measured);
  const CaptureRun predicted = replay.run(made.clock, DurationSource::model);
  EXPECT_NEAR(predicted.makespan_s / 120e-6, 1.0, 1e-9);
  EXPECT_NEAR(predicted.energy_j / (120e-6 * 250.0), 1.0, 1e-9);
  // What was captured is as many times slower as the table says, at the table's power.
  const ClockPair slow = parse_clock_pair(made.spec, "1593/1110");
  const CaptureRun replayed = replay.run(slow, DurationSource::captured);
  EXPECT_NEAR(replayed.makespan_s / (100e-6 * 150.0 / 120.0), 1.0, 1e-9);
  EXPECT_NEAR(replayed.energy_j / (replayed.makespan_s * 200.0), 1.0, 1e-9);
  EXPECT_NEAR(replay.run(made.clock, DurationSource::captured).makespan_s, 100e-6, 1e-12);
  expect_error<DataError>(
      [&] { (void)replay.run(parse_clock_pair(made.spec, "1593/1005"), DurationSource::captured); },
      "kernel 'gemm' has no cell at 1593/1005");
}

TEST(ReplayOfATable, LeavesOtherKernelsToTheFormulas) {
  SmallCapture made;
  made.add(0, made.copy, 0, 100'000);
  const CaptureReplay plain(made.capture, made.spec, made.clock);
  const CaptureReplay replay(made.capture, made.spec, made.clock, {}, gemm_cells(made.spec));
  const ClockPair slow = parse_clock_pair(made.spec, "1593/1110");
  for (const DurationSource source : {DurationSource::captured, DurationSource::model}) {
    EXPECT_EQ(replay.run(slow, source).makespan_s, plain.run(slow, source).makespan_s);
    EXPECT_EQ(replay.run(slow, source).energy_j, plain.run(slow, source).energy_j);
  }
}

// Cells that formulas could not make: far less power than idle, far more than the limit.
TEST(HeldTo, GivesBackAnyCell) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockPair clock = parse_clock_pair(spec, "1593/1110");
  for (const double power_w : {1.0, 100.0, 1000.0}) {
    for (const CalibratedKernel& kernel : spec.kernels) {
      const OperatingPoint point =
          operating_point(spec, held_to(spec, kernel.coefficients, clock, 2e-3, 2e-3 * power_w),
                          clock, spec.power_limit.limit_w);
      EXPECT_NEAR(point.time_s / 2e-3, 1.0, 1e-9) << kernel.name;
      EXPECT_NEAR(point.energy_j / (2e-3 * power_w), 1.0, 1e-9) << kernel.name;
    }
  }
}

}  // namespace
}  // namespace rubato
