// Captures made by hand or by a small host program (tests/made_run.hpp), in which it is known what
// waited for what.

#include "traces/graph/capture_graph.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/captures.hpp"
#include "tests/expect_error.hpp"
#include "tests/made_run.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// Sums of some hundred distances of whole nanoseconds.
constexpr double rounding_s = 1e-12;

ExecutionGraph graph_of(MadeRun&& run, const CaptureGraphOptions& options = {}) {
  return capture_graph(std::move(run).finish(), options).graph;
}

std::uint64_t arcs_of(const ExecutionGraph& graph, ArcKind kind, bool inferred) {
  const ArcCounts counts = graph.count_arcs();
  return (inferred ? counts.inferred : counts.read)[static_cast<std::size_t>(kind)];
}

TEST(CaptureGraph, AStreamRunsInOrderAndCallsLaunch) {
  MadeRun run(2);
  run.launch(0, run.kernel("a"), 30'000);  // starts at 6 us
  run.launch(0, run.kernel("b"), 10'000);
  run.launch(1, run.kernel("c"), 10'000);
  const ExecutionGraph graph = graph_of(std::move(run));
  EXPECT_EQ(arc_texts(graph), (std::vector<std::string>{
                                  "a > b: stream order",
                                  "host 0 > a: launch call",
                                  "host 0 > b: launch call",
                                  "host 0 > host 0: host order",
                                  "host 0 > host 2: host order",
                                  "host 2 > c: launch call",
                                  "origin > host 0: release",
                              }));
  EXPECT_LE(replay_error_s(graph), rounding_s);
  EXPECT_NEAR(graph.captured_span_s(), 41e-6, rounding_s);
}

// Twice as long launches: the host goes on as before, the stream is what there is to wait for.
TEST(CaptureGraph, WhatWaitedForTheStreamMovesWithIt) {
  MadeRun run(1);
  for (int i = 0; i < 10; ++i) run.launch(0, run.kernel("a"), 50'000);
  const ExecutionGraph graph = graph_of(std::move(run));
  EXPECT_NEAR(scaled_span_s(graph, 1.0), 509e-6, rounding_s);
  EXPECT_NEAR(scaled_span_s(graph, 2.0), 1009e-6, rounding_s);
  // At a hundredth the host's distance of 4 us is longer than a launch: the last of ten calls comes
  // 30 us after the start of the first launch.
  EXPECT_NEAR(scaled_span_s(graph, 0.01), (30 + 0.5) * 1e-6, 1e-9);
}

TEST(CaptureGraph, SyncsHoldTheHostUntilTheLaunchIsOver) {
  MadeRun run(2);
  run.launch(0, run.kernel("a"), 100'000);
  run.launch(1, run.kernel("b"), 300'000);
  run.sync_stream(0);
  run.launch(0, run.kernel("c"), 100'000);
  const auto record = run.record(1);
  run.sync_event(record);
  run.launch(0, run.kernel("d"), 100'000);
  run.sync_device();
  run.launch(0, run.kernel("e"), 1'000);
  const ExecutionGraph graph = graph_of(std::move(run));
  EXPECT_LE(replay_error_s(graph), rounding_s);
  const auto syncs = [&] {
    std::vector<std::string> found;
    for (const std::string& text : arc_texts(graph)) {
      if (text.find(": sync") != std::string::npos)
        found.push_back(text.substr(0, 1) + text.substr(text.find(':')));
    }
    return found;
  }();
  // The device is waited for on both streams.
  EXPECT_EQ(syncs, (std::vector<std::string>{"a: sync", "b: sync", "b: sync", "d: sync"}));
}

// The host sleeps in a wait for most of the run: at half the kernel times the run takes half.
TEST(CaptureGraph, LongWaitsOfTheHostShrinkWithTheLaunches) {
  for (const bool read : {true, false}) {
    MadeRun run(1);
    for (int step = 0; step < 20; ++step) {
      for (int i = 0; i < 5; ++i) run.launch(0, run.kernel("a"), 1'000'000);
      run.sync_device();
    }
    run.launch(0, run.kernel("last"), 1'000);
    const ExecutionGraph graph = graph_of(std::move(run), {.read_waits = read});
    EXPECT_LE(replay_error_s(graph), rounding_s);
    EXPECT_NEAR(scaled_span_s(graph, 0.5) / graph.captured_span_s(), 0.5, 0.01) << read;
    EXPECT_NEAR(scaled_span_s(graph, 2.0) / graph.captured_span_s(), 2.0, 0.01) << read;
  }
}

TEST(CaptureGraph, ABlockingCopyHoldsTheHostUntilItsEnd) {
  MadeRun run(2);
  run.launch(0, run.kernel("a"), 50'000);
  run.blocking_copy(0, run.kernel("copy", KernelClass::memcpy), 200'000);
  run.launch(1, run.kernel("b"), 1'000);
  const ExecutionGraph graph = graph_of(std::move(run));
  EXPECT_TRUE(has_arc(graph, "copy > host 256: sync"));
  EXPECT_LE(replay_error_s(graph), rounding_s);
  EXPECT_NEAR(scaled_span_s(graph, 10.0) - scaled_span_s(graph, 1.0), 9 * 251e-6, 1e-9);
}

// A call that found the work done took its time itself: faster launches do not shorten it.
TEST(CaptureGraph, AWaitThatFoundNothingToWaitForKeepsItsTime) {
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 5'000);
  run.spend(100'000);
  run.sync_device();
  run.launch(0, run.kernel("b"), 5'000);
  const ExecutionGraph graph = graph_of(std::move(run));
  EXPECT_NEAR(scaled_span_s(graph, 1.0) - scaled_span_s(graph, 0.0), 5e-6, rounding_s);
  EXPECT_LE(replay_error_s(graph), rounding_s);
}

TEST(CaptureGraph, AnEventIsReadFromItsRecord) {
  const auto make = [] {
    MadeRun run(3);
    run.launch(0, run.kernel("a"), 100'000);
    const auto record = run.record(0);
    run.launch(0, run.kernel("behind"), 400'000);
    run.launch(2, run.kernel("other"), 20'000);
    run.wait(1, record);
    run.launch(1, run.kernel("waits"), 10'000);
    run.launch(1, run.kernel("next"), 10'000);
    return run;
  };
  const ExecutionGraph graph = graph_of(make());
  EXPECT_TRUE(has_arc(graph, "a > waits: event"));
  EXPECT_EQ(arcs_of(graph, ArcKind::event, false), 1u);
  EXPECT_EQ(arcs_of(graph, ArcKind::event, true), 0u);
  EXPECT_LE(replay_error_s(graph), rounding_s);
}

// What the file does not say: by the calls, the collective waits for the last launch of its thread.
TEST(CaptureGraph, AnEventWithoutItsRecordIsInferred) {
  MadeRun run(2);
  const KernelId reduce = run.kernel("reduce", KernelClass::communication);
  run.launch(0, run.kernel("a"), 100'000);
  run.wait(1, run.record(0));
  run.launch(1, reduce, 150'000);
  run.launch(0, run.kernel("b"), 20'000);
  run.wait(0, run.record(1));
  run.launch(0, run.kernel("c"), 10'000);
  Capture capture = std::move(run).finish();
  const auto expect_events = [&](const Capture& with, const CaptureGraphOptions& options) {
    const ExecutionGraph graph = capture_graph(with, options).graph;
    EXPECT_TRUE(has_arc(graph, "a > reduce: event (inferred)"));
    EXPECT_TRUE(has_arc(graph, "reduce > c: event (inferred)"));
    EXPECT_EQ(arcs_of(graph, ArcKind::event, true), 2u);
    EXPECT_EQ(arcs_of(graph, ArcKind::event, false), 0u);
    EXPECT_LE(replay_error_s(graph), rounding_s);
  };
  expect_events(capture, {.read_waits = false});
  for (CapturedCall& call : capture.calls) {
    if (call.kind != CallKind::stream_wait) continue;
    call.record.reset();
    call.recorded_stream.reset();
  }
  expect_events(capture, {});
}

TEST(CaptureGraph, WithoutCallsAWaitShowsInTime) {
  MadeRun run(3);
  run.launch(0, run.kernel("a"), 100'000);
  run.launch(2, run.kernel("earlier"), 80'000);
  run.wait(1, run.record(0));
  run.launch(1, run.kernel("b"), 50'000);
  Capture capture = std::move(run).finish();
  capture.calls.clear();
  for (CapturedLaunch& launch : capture.launches) launch.call.reset();
  const ExecutionGraph graph = capture_graph(capture).graph;
  EXPECT_TRUE(has_arc(graph, "a > b: event (inferred)"));
  EXPECT_EQ(arcs_of(graph, ArcKind::event, true), 1u);
  EXPECT_LE(replay_error_s(graph), rounding_s);

  // More than 10 us later something else must have been waited for.
  for (CapturedLaunch& launch : capture.launches) {
    if (launch.stream == 1) launch.start_ns += 9'000;
  }
  EXPECT_EQ(arcs_of(capture_graph(capture).graph, ArcKind::event, true), 0u);
}

// Files without calls: a pause that ends after all that was launched, however long after.
TEST(CaptureGraph, WithoutCallsAPauseUntilAllWasOverIsAWait) {
  for (const std::int64_t after_ns : {40'000, 60'000, 5'000'000}) {
    MadeRun run(1);
    run.launch(0, run.kernel("a"), 2'000'000);
    run.sync_device();
    run.spend(after_ns - 6'000);
    run.launch(0, run.kernel("b"), 100'000);
    Capture capture = std::move(run).finish();
    capture.calls.clear();
    for (CapturedLaunch& launch : capture.launches) launch.call.reset();
    const CaptureGraph found = capture_graph(capture);
    EXPECT_EQ(arcs_of(found.graph, ArcKind::sync, true), 1u) << after_ns;
    EXPECT_LE(replay_error_s(found.graph), rounding_s);
    // Whether the host waited is no question where it went on at once.
    EXPECT_EQ(found.ranks.notes.size(), after_ns <= 1'000'000 ? 0u : 1u) << after_ns;
  }
}

TEST(CaptureGraph, LaunchesWithoutACallFollowTheirStream) {
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 10'000);
  run.launch(0, run.kernel("b"), 10'000);
  Capture capture = std::move(run).finish();
  capture.calls.clear();
  for (CapturedLaunch& launch : capture.launches) {
    launch.call.reset();
    launch.launch_ns.reset();
  }
  EXPECT_EQ(arc_texts(capture_graph(capture).graph),
            (std::vector<std::string>{"a > b: stream order", "origin > a: release"}));
}

// A thread that slept was woken by the one that called last; it does not wait for its own past.
TEST(CaptureGraph, AThreadThatSleptFollowsWhoWokeIt) {
  MadeRun run(1, 2);
  run.woken(1);
  run.launch(0, run.kernel("backward"), 200'000);
  run.woken(0);
  run.sync_device();
  for (int i = 0; i < 3; ++i) {
    run.launch(0, run.kernel("forward"), 300'000);
    run.sync_device();
  }
  run.woken(1);
  run.launch(0, run.kernel("backward"), 200'000);
  const ExecutionGraph graph = graph_of(std::move(run));
  EXPECT_LE(replay_error_s(graph), rounding_s);
  const ArcCounts counts = graph.count_arcs();
  EXPECT_GE(counts.inferred[static_cast<std::size_t>(ArcKind::host_order)], 1u);
  EXPECT_NEAR(scaled_span_s(graph, 2.0) / graph.captured_span_s(), 2.0, 0.06);
  EXPECT_NEAR(scaled_span_s(graph, 0.5) / graph.captured_span_s(), 0.5, 0.06);
}

TEST(CaptureGraph, NoLaunchesIsAnError) {
  expect_error<DataError>([] { static_cast<void>(capture_graph(MadeRun(1).finish())); },
                          "made: no launches");
}

// A step made of shapes: nothing in it took time, so nothing can be reproduced.
TEST(CaptureGraph, NoTimesAreAnError) {
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 0);
  run.launch(0, run.kernel("b"), 0);
  expect_error<DataError>([&] { static_cast<void>(capture_graph(std::move(run).finish())); },
                          "made: no launch has a time");
}

TEST(CaptureGraph, OverlapOfOneStreamIsTold) {
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 50'000);
  run.launch(0, run.kernel("b"), 50'000);
  Capture capture = std::move(run).finish();
  capture.launches[1].start_ns -= 11'000;
  EXPECT_NEAR(capture_graph(capture).overlap_s, 10e-6, rounding_s);
}

// Any host program: the captured durations give the captured starts, and the events that were
// there are read.
RC_GTEST_PROP(CaptureGraph, GivesTheCapturedStartsBack, ()) {
  const auto streams = *rc::gen::inRange<std::uint32_t>(1, 4);
  const auto threads = *rc::gen::inRange<std::uint32_t>(1, 3);
  MadeRun run(streams, threads);
  const KernelId kernels[] = {run.kernel("a"), run.kernel("r", KernelClass::communication)};
  std::vector<MadeRun::Call> records;
  const auto stream = [&] { return *rc::gen::inRange<std::uint32_t>(0, streams); };
  run.launch(0, kernels[0], 1'000);
  const auto calls = *rc::gen::inRange(1, 40);
  for (int i = 0; i < calls; ++i) {
    switch (*rc::gen::inRange(0, 10)) {
      case 0: run.sync_device(); break;
      case 1: run.sync_stream(stream()); break;
      case 2: run.blocking_copy(stream(), kernels[0], *rc::gen::inRange(1, 99) * 1'000); break;
      case 3: records.push_back(run.record(stream())); break;
      case 4:
        if (!records.empty()) run.wait(stream(), *rc::gen::elementOf(records));
        break;
      case 5:
        if (!records.empty()) run.sync_event(*rc::gen::elementOf(records));
        break;
      case 6: run.woken(*rc::gen::inRange<std::uint32_t>(0, threads)); break;
      case 7: run.spend(*rc::gen::inRange(0, 300) * 1'000); break;
      default:
        run.launch(stream(), *rc::gen::elementOf(std::vector(kernels, kernels + 2)),
                   *rc::gen::inRange(1, 200) * 1'000);
    }
  }
  Capture capture = std::move(run).finish();
  if (*rc::gen::inRange(0, 4) == 0) {
    capture.calls.clear();
    for (CapturedLaunch& launch : capture.launches) launch.call.reset();
  }
  for (const bool read : {true, false}) {
    const CaptureGraph made = capture_graph(capture, {.read_waits = read});
    RC_ASSERT(replay_error_s(made.graph) <= rounding_s);
    RC_ASSERT(made.overlap_s == 0.0);
    RC_ASSERT(made.activity_of_launch.size() == 1u);
    for (std::size_t i = 0; i < capture.launches.size(); ++i)
      RC_ASSERT(*made.graph[made.activity_of_launch[0][i]].launch == i);
  }
}

// Compute, collectives beside it, the optimizer behind them: every event is found again.
RC_GTEST_PROP(CaptureGraph, InfersTheEventsOfTrainingSteps, ()) {
  MadeStep step;
  step.layers = *rc::gen::inRange<std::uint32_t>(1, 12);
  step.launches_per_layer = *rc::gen::inRange<std::uint32_t>(1, 6);
  step.kernel_ns = *rc::gen::inRange(5, 200) * 1'000;
  step.collective_ns = *rc::gen::inRange(5, 400) * 1'000;
  step.times.call_ns = *rc::gen::inRange(1, 20) * 1'000;
  const Capture capture = made_step(
      step, [](std::int64_t ns) { return ns * *rc::gen::inRange<std::int64_t>(80, 120) / 100; });
  const auto pairs = [&](bool read) {
    const ExecutionGraph graph = capture_graph(capture, {.read_waits = read}).graph;
    std::vector<std::string> events;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
        if (arc.kind != ArcKind::event) continue;
        RC_ASSERT(arc.inferred == !read);
        events.push_back(
            fmt::format("{} {}", *graph[arc.from].launch, *graph.activities()[i].launch));
      }
    }
    std::ranges::sort(events);
    return events;
  };
  const auto read = pairs(true);
  RC_ASSERT(read.size() >= 1u);
  RC_ASSERT(pairs(false) == read);
}

// Captures of others: at the captured durations they end when they did.
TEST(CaptureGraph, RealCapturesAreReproduced) {
  for (const char* name : {"kineto_a100_ddp2_resnet.json.gz", "kineto_h100_qwen_fwd.json.gz"}) {
    const Capture capture = import_capture(captured(std::string("traces/") + name));
    const CaptureGraph made = capture_graph(capture);
    const double span_s = made.graph.captured_span_s();
    EXPECT_NEAR(scaled_span_s(made.graph, 1.0) / span_s, 1.0, 1e-3) << name;
    const ArcCounts counts = made.graph.count_arcs();
    std::string line;
    for (std::size_t k = 0; k < arc_kinds; ++k) {
      line += fmt::format("  {} {}+{}", name_of(static_cast<ArcKind>(k)), counts.read[k],
                          counts.inferred[k]);
    }
    fmt::print("{}: {} launches, span {:.6f} s, largest error of a start {:.2e} s\n{}\n", name,
               capture.launches.size(), span_s, replay_error_s(made.graph), line);
  }
}

// Waits that the file names and the graph cannot have are counted.
TEST(CaptureGraph, SaysWhatItLeavesOut) {
  MadeRun run(3);
  run.launch(0, run.kernel("a"), 50'000);
  const MadeRun::Call after_a = run.record(0);
  run.wait(1, after_a);
  run.launch(1, run.kernel("b"), 10'000);
  run.wait(2, after_a);  // for nothing: the stream has no launches
  const MadeRun::Call after_b = run.record(1);
  run.wait(0, after_b);
  run.launch(0, run.kernel("c"), 10'000);
  Capture capture = std::move(run).finish();
  EXPECT_EQ(capture_graph(capture).ranks.notes,
            std::vector<std::string>{
                "1 of 3 waits of a stream for another are left out: 1 where one of the two has no "
                "work, 0 that the captured times do not keep"});
  capture.launches.back().start_ns = capture.launches[1].end_ns() - 5'000;  // c within b
  EXPECT_EQ(capture_graph(capture).ranks.notes,
            std::vector<std::string>{
                "2 of 3 waits of a stream for another are left out: 1 where one of the two has no "
                "work, 1 that the captured times do not keep"});
}

}  // namespace
}  // namespace rubato
