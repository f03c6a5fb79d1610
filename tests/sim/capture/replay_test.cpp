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
    const std::int64_t duration = *rc::gen::inRange<std::int64_t>(0, 500'000);
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

}  // namespace
}  // namespace rubato
