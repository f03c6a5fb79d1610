// Calls that a recording does not have, or that cannot be: what is known of them all the same, and
// what is said of the rest.

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/made_run.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

// Sums of some hundred distances of whole nanoseconds.
constexpr double whole_ns_rounding_s = 1e-12;

// The capture as a recording has it that began in the midst of it: without the calls before.
Capture recorded_from(const Capture& whole, std::int64_t from_ns) {
  Capture cut = whole;
  std::vector<std::optional<std::uint32_t>> place;
  cut.calls.clear();
  for (const CapturedCall& call : whole.calls) {
    const bool kept = call.start_ns >= from_ns;
    place.push_back(kept ? std::optional(static_cast<std::uint32_t>(cut.calls.size()))
                         : std::nullopt);
    if (kept) cut.calls.push_back(call);
  }
  for (CapturedCall& call : cut.calls) {
    if (call.record) call.record = place[*call.record];
  }
  for (CapturedLaunch& launch : cut.launches) {
    launch.call = place[*launch.call];
    if (!launch.call) launch.launch_ns.reset();
  }
  return cut;
}

// What a wait is for may have been launched before the recording began. The host waits for it as
// long as the work takes, whichever call it waits in.
TEST(LostCalls, WaitsForLaunchesFromBeforeTheRecordingHoldTheHost) {
  for (const std::string wait : {"device", "stream", "event", "copy"}) {
    MadeRun run(2);
    for (int i = 0; i < 10; ++i) run.launch(0, run.kernel("a"), 100'000);
    const MadeRun::Call after_a = run.record(0);
    run.spend(1'000);
    if (wait == "device") run.sync_device();
    if (wait == "stream") run.sync_stream(0);
    if (wait == "event") run.sync_event(after_a);
    if (wait == "copy") run.blocking_copy(0, run.kernel("copy", KernelClass::memcpy), 1'000);
    run.launch(1, run.kernel("b"), 300'000);
    const Capture whole = std::move(run).finish();
    const Capture cut = recorded_from(whole, 43'000);
    ASSERT_LE(cut.calls.size(), 3U);
    for (const bool read : {true, false}) {
      const CaptureGraph all = capture_graph(whole),
                         part = capture_graph(cut, {.read_waits = read});
      EXPECT_EQ(part.ranks.notes, std::vector<std::string>{}) << wait;
      EXPECT_LE(replay_error_s(part.graph), whole_ns_rounding_s) << wait;
      for (const double factor : {0.5, 1.0, 2.0, 10.0})
        EXPECT_NEAR(scaled_span_s(part.graph, factor), scaled_span_s(all.graph, factor), 1e-9)
            << wait << ", read " << read << ", times " << factor;
    }
  }
}

// An event may be behind work that more follows: what was over when the wait ended is waited for.
TEST(LostCalls, AnEventFromBeforeTheRecordingIsOfWhatWasOver) {
  MadeRun run(2);
  run.launch(0, run.kernel("a"), 100'000);
  const MadeRun::Call after_a = run.record(0);
  run.launch(0, run.kernel("long"), 900'000);
  run.sync_event(after_a);
  run.launch(1, run.kernel("b"), 2'000'000);
  const Capture whole = std::move(run).finish();
  const Capture cut = recorded_from(whole, 5'000);
  EXPECT_TRUE(has_arc(capture_graph(whole).graph, "a > host 105: sync"));
  EXPECT_TRUE(has_arc(capture_graph(cut).graph, "a > host 105: sync (inferred)"));
}

// A wait of one process is none for the work of another one.
TEST(LostCalls, LaunchesWithoutACallAreOfTheProcessOfTheirStream) {
  MadeRun run(2);
  run.launch(0, run.kernel("a"), 100'000);
  run.launch(1, run.kernel("b"), 50'000);
  run.sync_stream(0);
  run.launch(0, run.kernel("c"), 10'000);
  run.launch(1, run.kernel("d"), 10'000);
  Capture cut = recorded_from(std::move(run).finish(), 8'000);
  cut.calls.at(0).kind = CallKind::device_sync;
  cut.threads.push_back({2, 1});
  cut.calls.at(2).thread = 1;  // the launch of d is another process's
  const ExecutionGraph graph = capture_graph(cut).graph;
  EXPECT_TRUE(has_arc(graph, "a > host 105: sync"));
  EXPECT_FALSE(has_arc(graph, "b > host 105: sync"));
}

// A process of two devices, of which one was over before the other, or still works when the wait
// for the other is over: times of the one move nothing behind the wait.
TEST(DeviceSync, WaitsForItsOwnDeviceAlone) {
  enum class Said { by_file, by_last_launch, by_time };
  for (const auto& [said, other_ns] : {std::pair{Said::by_file, 900'000},
                                       {Said::by_last_launch, 900'000},
                                       {Said::by_last_launch, 20'000},
                                       {Said::by_time, 900'000},
                                       {Said::by_time, 20'000}}) {
    MadeRun run(2);
    const bool other_first = said == Said::by_last_launch;
    if (other_first) run.launch(1, run.kernel("other"), other_ns);
    run.launch(0, run.kernel("a"), 100'000);
    if (!other_first) run.launch(1, run.kernel("other"), other_ns);
    run.sync_stream(0);
    run.launch(0, run.kernel("next"), 10'000);
    Capture capture = std::move(run).finish();
    capture.devices.push_back({1, "A100"});
    capture.streams[1].device = 1;
    capture.calls[2].kind = CallKind::device_sync;
    if (said != Said::by_file) capture.calls[2].stream.reset();
    const CaptureGraph made = capture_graph(capture);
    std::vector<std::string> waits;
    for (const std::string& arc : arc_texts(made.graph)) {
      if (arc.find(": sync") != std::string::npos) waits.push_back(arc.substr(0, arc.find(" > ")));
    }
    EXPECT_EQ(waits, std::vector<std::string>{"a"}) << static_cast<int>(said);
    EXPECT_EQ(made.ranks.notes, std::vector<std::string>{}) << static_cast<int>(said);
  }
}

TEST(LostCalls, SaysWhichCallsItDoesNotBelieve) {
  const auto notes = [](const Capture& capture) { return capture_graph(capture).ranks.notes; };
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 50'000);
  run.launch(0, run.kernel("b"), 50'000);
  run.sync_device();
  run.spend(10'000);
  run.sync_device();
  run.launch(0, run.kernel("c"), 10'000);
  const Capture capture = std::move(run).finish();
  EXPECT_EQ(notes(capture), std::vector<std::string>{});
  Capture late = capture;
  late.launches.back().start_ns -= 10'000;  // before its call
  EXPECT_EQ(notes(late),
            std::vector<std::string>{"1 launches begin before their host call, an error of the "
                                     "recorded times: these calls are ignored"});
  Capture early = capture;
  early.launches[1].duration_ns += 8'000;  // beyond the end of the wait
  EXPECT_EQ(notes(early),
            std::vector<std::string>{"1 waits of the host end before the work that they wait for: "
                                     "these waits are ignored"});
  Capture long_wait = capture;
  long_wait.calls[3].duration_ns = 2'000'000;
  long_wait.calls[4].start_ns += 2'000'000;
  long_wait.launches[2].start_ns += 2'000'000;
  long_wait.launches[2].launch_ns = long_wait.calls[4].start_ns;
  EXPECT_EQ(notes(long_wait),
            std::vector<std::string>{"1 waits of the host (2.0 ms in all) have no recorded cause: "
                                     "they are assumed to take as long at any clock"});
}

}  // namespace
}  // namespace rubato
