// Runs whose GPU has a clock of its own. The law: whatever its offset, the run is the one that was.

#include "traces/import/device_clock.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/made_run.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// Bound by the GPU and by the host in turn; it waits after each.
Capture made_capture(bool waits = true) {
  MadeRun run(2);
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 20; ++i) run.launch(0, run.kernel("long"), 30'000);
    const MadeRun::Call record = run.record(0);
    run.wait(1, record);
    run.launch(1, run.kernel("beside"), 40'000);
    if (waits) run.sync_device();
    for (int i = 0; i < 20; ++i) run.launch(0, run.kernel("short"), 2'000);
    if (waits) run.sync_stream(0);
    run.spend(50'000);
  }
  return std::move(run).finish();
}

template <class Offset>
Capture shifted(Capture capture, const Offset& offset_ns) {
  for (CapturedLaunch& launch : capture.launches)
    launch.start_ns += static_cast<std::int64_t>(offset_ns(launch.start_ns));
  return capture;
}

std::uint64_t arcs_of(const Capture& capture, ArcKind kind) {
  const ArcCounts counts = capture_graph(capture).graph.count_arcs();
  return counts.read[static_cast<std::size_t>(kind)];
}

// Launches follow their calls, waits their launches, and the run scales as it did: to the 6 us from
// a call to its launch, which nothing in a file of another clock tells.
void expect_same_run(const Capture& found, const Capture& truth, double tolerance = 0.01) {
  for (const ArcKind kind : {ArcKind::launch_call, ArcKind::sync, ArcKind::event})
    EXPECT_EQ(arcs_of(found, kind), arcs_of(truth, kind)) << name_of(kind);
  const ExecutionGraph graph = capture_graph(found).graph, was = capture_graph(truth).graph;
  for (const double factor : {0.1, 1.0, 3.0})
    EXPECT_NEAR(scaled_span_s(graph, factor) / scaled_span_s(was, factor), 1.0, tolerance)
        << factor;
}

TEST(DeviceClock, AgreesAndIsLeftAlone) {
  const Capture truth = made_capture();
  Capture found = truth;
  align_device_clocks(found);
  EXPECT_EQ(found, truth);
}

TEST(DeviceClock, AheadOrBehindIsMovedByAConstant) {
  for (const bool waits : {true, false}) {
    const Capture truth = made_capture(waits);
    for (const std::int64_t us : {-3'000'000, -800, -100, -20, 200, 5'000'000}) {
      if (us > -500 && !waits) continue;  // nothing shows it, or too few launches
      Capture found = shifted(truth, [&](std::int64_t) { return us * 1'000; });
      align_device_clocks(found);
      ASSERT_EQ(found.left_out.size(), 1U) << us;
      EXPECT_TRUE(found.left_out[0].starts_with("an offset of the clock of GPU 0, ")) << us;
      EXPECT_NE(found.left_out[0].find(us < 0 ? "us ahead of the host's" : "us behind the host's"),
                std::string::npos);
      const std::int64_t moved_ns = found.launches[0].start_ns - truth.launches[0].start_ns;
      EXPECT_LE(std::abs(moved_ns), 8'000) << us;
      expect_same_run(found, truth);
      Capture again = found;
      align_device_clocks(again);
      EXPECT_EQ(again, found);
    }
  }
}

TEST(DeviceClock, ThatDriftsIsMovedAlongALine) {
  const Capture truth = made_capture();
  // A second of recording between two steps, so that 100 us a second shows.
  Capture slow = truth;
  const std::int64_t half = slow.calls[slow.calls.size() / 2].start_ns;
  constexpr std::int64_t pause_ns = 1'000'000'000;
  for (CapturedCall& call : slow.calls) call.start_ns += call.start_ns >= half ? pause_ns : 0;
  for (CapturedLaunch& launch : slow.launches) {
    if (*launch.launch_ns < half) continue;
    launch.start_ns += pause_ns;
    *launch.launch_ns += pause_ns;
  }
  for (const double drift : {-100e-6, 100e-6}) {
    Capture found = shifted(
        slow, [&](std::int64_t ns) { return -400'000.0 + drift * static_cast<double>(ns); });
    align_device_clocks(found);
    ASSERT_EQ(found.left_out.size(), 1U);
    EXPECT_NE(found.left_out[0].find("us a second"), std::string::npos) << found.left_out[0];
    expect_same_run(found, slow);
  }
}

TEST(DeviceClock, OfEachGpuIsItsOwn) {
  Capture truth = made_capture();
  truth.devices.push_back({1, "A100"});
  truth.streams[0].device = 1;
  for (CapturedCall& call : truth.calls) {
    if (call.kind == CallKind::device_sync) call.kind = CallKind::stream_sync, call.stream = 1;
  }
  Capture found = truth;
  for (CapturedLaunch& launch : found.launches) launch.start_ns -= launch.stream == 0 ? 90'000 : 0;
  align_device_clocks(found);
  ASSERT_EQ(found.left_out.size(), 1U);
  EXPECT_TRUE(found.left_out[0].starts_with("an offset of the clock of GPU 1"));
  expect_same_run(found, truth, 0.03);  // 6 us now lie between the GPUs, too
}

// Calls of other launches, and times that were not recorded, are not a clock's.
TEST(DeviceClock, AFewOddTimesAreNoOffset) {
  const Capture truth = made_capture();
  for (const std::int64_t odd_ns : {-200'000LL, -1'000'000'000'000LL}) {
    for (const bool waits : {true, false}) {
      Capture found = made_capture(waits);
      for (const std::size_t i : {30U, 31U, 90U}) found.launches[i].start_ns += odd_ns;
      const Capture given = found;
      align_device_clocks(found);
      EXPECT_EQ(found, given);
    }
  }
  Capture unset = made_capture();
  for (std::size_t i = 0; i < unset.launches.size(); i += 6)
    unset.launches[i].start_ns = -(1LL << 60);
  const Capture given = unset;
  align_device_clocks(unset);
  EXPECT_EQ(unset, given);
}

// Every reader's captures are aligned: here those of our own format.
class DeviceClockFiles : public FileTest {};
TEST_F(DeviceClockFiles, AreAlignedAsTheyAreRead) {
  const Capture truth = made_capture();
  const Capture found = import_capture(
      file("ahead.json", capture_json(shifted(truth, [](std::int64_t) { return -300'000; }))));
  ASSERT_EQ(found.left_out.size(), 1U);
  expect_same_run(found, truth);
}

}  // namespace
}  // namespace rubato
