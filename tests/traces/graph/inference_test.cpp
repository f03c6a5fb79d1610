// Arcs that files hold, taken away and inferred again: how many come back, how many of those that
// come are right, and what the difference makes of the run at other kernel times.

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/captures.hpp"
#include "tests/made_run.hpp"
#include "tests/paths.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// Events between streams and waits of the host: a launch, and the launch or the moment that waits.
std::set<std::string> waits_of(const ExecutionGraph& graph, bool inferred_too = true) {
  std::set<std::string> waits;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& to = graph.activities()[i];
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      if (arc.kind != ArcKind::event && arc.kind != ArcKind::sync) continue;
      if (arc.inferred && !inferred_too) continue;
      const std::string who =
          to.launch ? fmt::format("launch {}", *to.launch) : fmt::format("host {:.9f}", to.start_s);
      waits.insert(fmt::format("{} after {}", who, *graph[arc.from].launch));
    }
  }
  return waits;
}

struct Inference {
  // Arcs that were read; that are inferred without them; of those the ones that were there; of
  // those read the ones found.
  std::size_t read = 0, inferred = 0, right = 0, found = 0;
  double half_time_error = 0.0;    // of the span at half the kernel times
  double double_time_error = 0.0;  // and at twice

  [[nodiscard]] double recall() const {
    return read == 0 ? 1.0 : static_cast<double>(found) / static_cast<double>(read);
  }
  [[nodiscard]] double precision() const {
    return inferred == 0 ? 1.0 : static_cast<double>(right) / static_cast<double>(inferred);
  }
};

Inference infer_again(const Capture& capture) {
  const ExecutionGraph known = capture_graph(capture, {.read_waits = true}).graph;
  const ExecutionGraph guessed = capture_graph(capture, {.read_waits = false}).graph;
  const auto all = waits_of(known), read = waits_of(known, false), inferred = waits_of(guessed);
  Inference found;
  found.read = read.size();
  found.inferred = inferred.size();
  for (const std::string& wait : inferred) {
    found.right += all.contains(wait) ? 1U : 0U;
    found.found += read.contains(wait) ? 1U : 0U;
  }
  const auto error = [&](double factor) {
    return scaled_span_s(guessed, factor) / scaled_span_s(known, factor) - 1.0;
  };
  found.half_time_error = error(0.5);
  found.double_time_error = error(2.0);
  return found;
}

void print(const std::string& name, const Inference& found) {
  fmt::print(
      "{}: {} waits read, {} inferred without them: {:.1f} % of them right, {:.1f} % of those read "
      "found; span at half the kernel times {:+.2f} %, at twice {:+.2f} %\n",
      name, found.read, found.inferred, 100.0 * found.precision(), 100.0 * found.recall(),
      100.0 * found.half_time_error, 100.0 * found.double_time_error);
}

// A step that waits for its loss now and then, with collectives beside the backward pass.
TEST(Inference, FindsTheWaitsOfMadeSteps) {
  for (const std::uint32_t layers : {2U, 12U}) {
    MadeStep step;
    step.layers = layers;
    int count = 0;
    const Capture capture = made_step(step, [&](std::int64_t ns) {
      return ns * (85 + 10 * (count++ % 4)) / 100;  // no two alike
    });
    const Inference found = infer_again(capture);
    print(fmt::format("made step of {} layers", layers), found);
    EXPECT_GE(found.read, 1u);
    EXPECT_GE(found.recall(), 0.95);
    EXPECT_GE(found.precision(), 0.95);
    EXPECT_NEAR(found.half_time_error, 0.0, 0.005);
    EXPECT_NEAR(found.double_time_error, 0.0, 0.005);
  }
}

// A capture of others that names what was waited for.
TEST(Inference, OfARealCaptureKeepsItsSpan) {
  const Inference found = infer_again(import_capture(captured("traces/nsys_h100_2gpu_dit.sqlite")));
  print("nsys_h100_2gpu_dit", found);
  EXPECT_GE(found.read, 1u);
  EXPECT_NEAR(found.half_time_error, 0.0, 0.02);
  EXPECT_NEAR(found.double_time_error, 0.0, 0.02);
}

// The host slept in cudaDeviceSynchronize for 533 of 764 ms and worked for some ms after each: at
// half the kernel times that is about half, with its calls and without them.
TEST(Inference, ARunThatMostlyWaitsTakesHalfAtHalfTheKernelTimes) {
  MadeRun run(1);
  constexpr int steps = 14;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 50; ++i) {
      run.launch(0, run.kernel("a"), 1'050'000);
      run.spend(300'000);
    }
    run.sync_device();
    run.spend(1'500'000);
  }
  run.launch(0, run.kernel("last"), 1'000);
  const Capture whole = std::move(run).finish();
  std::int64_t waited_ns = 0;
  for (const CapturedCall& call : whole.calls)
    waited_ns += call.kind == CallKind::device_sync ? call.duration_ns : 0;
  Capture launches_alone = whole;
  launches_alone.calls.clear();
  for (CapturedLaunch& launch : launches_alone.launches) launch.call.reset();
  for (const Capture& capture : {whole, launches_alone}) {
    const ExecutionGraph graph = capture_graph(capture).graph;
    const double span_s = graph.captured_span_s();
    fmt::print("host waits for {:.0f} of {:.0f} ms; at half the kernel times {:.0f} ms\n",
               1e-6 * static_cast<double>(waited_ns), 1e3 * span_s,
               1e3 * scaled_span_s(graph, 0.5));
    EXPECT_NEAR(scaled_span_s(graph, 0.5) / span_s, 0.51, 0.02);
    EXPECT_NEAR(scaled_span_s(graph, 1.0) / span_s, 1.0, 1e-9);
  }
}

enum class Pause { waits, works };

// Steps of one kernel, with its time times `factor`, and of a pause. The host waits for the GPU and
// fetches for 8 ms, or works for as long without a look at the GPU.
Capture run_with_pauses(Pause pause, double factor) {
  MadeRun run(1);
  for (int step = 0; step < 5; ++step) {
    run.launch(0, run.kernel("a"), static_cast<std::int64_t>(factor * 10e6));
    run.launch(0, run.kernel("b"), static_cast<std::int64_t>(factor * 20e6));
    if (pause == Pause::waits) {
      run.sync_device();
      run.spend(8'000'000);
    } else {
      run.spend(38'000'000);
    }
  }
  run.launch(0, run.kernel("last"), static_cast<std::int64_t>(factor * 1e6));
  return std::move(run).finish();
}

Capture without_waits(Capture capture) {
  std::vector<std::optional<std::uint32_t>> place;
  std::vector<CapturedCall> kept;
  for (const CapturedCall& call : capture.calls) {
    const bool launches = call.kind == CallKind::launch;
    place.push_back(launches ? std::optional(static_cast<std::uint32_t>(kept.size()))
                             : std::nullopt);
    if (launches) kept.push_back(call);
  }
  capture.calls = std::move(kept);
  for (CapturedLaunch& launch : capture.launches) launch.call = place[*launch.call];
  return capture;
}

// Either host gives the same file if waits are not in it. At any kernel times the run then takes as
// long as with the host that waits: slower kernels make it later than with the one that works, and
// what is later holds for both.
TEST(Inference, PausesOfAFileWithoutWaitsAreThoseWithWhichSlowerClocksComeLater) {
  for (const Pause pause : {Pause::waits, Pause::works}) {
    const CaptureGraph found = capture_graph(without_waits(run_with_pauses(pause, 1.0)));
    const auto later_frac = [](double span_s, double usual_s) { return span_s / usual_s - 1.0; };
    const double usual_s = found.graph.captured_span_s();
    for (const double factor : {0.7, 1.03, 1.3, 2.0}) {
      const auto truth = [&](Pause of) {
        const auto span_s = [&](double at) {
          return capture_graph(run_with_pauses(of, at)).graph.captured_span_s();
        };
        return later_frac(span_s(factor), span_s(1.0));
      };
      const double later = later_frac(scaled_span_s(found.graph, factor), usual_s);
      EXPECT_NEAR(later, truth(Pause::waits), 1e-3) << factor;
      if (factor > 1.0) {
        EXPECT_GE(later, truth(Pause::works) - 1e-3) << factor;
      }
    }
    ASSERT_EQ(found.ranks.notes.size(), 1U);
    EXPECT_NE(found.ranks.notes.front().find("records no waits of the host: 5 pauses"),
              std::string::npos)
        << found.ranks.notes.front();
  }
}

// One wait in the file, and it decides: other pauses are the host's own time.
TEST(Inference, PausesOfAFileWithWaitsAreTheHostsTime) {
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 10'000'000);
  run.spend(30'000'000);
  run.launch(0, run.kernel("a"), 10'000'000);
  run.sync_device();
  run.launch(0, run.kernel("b"), 1'000);
  const CaptureGraph found = capture_graph(std::move(run).finish());
  EXPECT_NEAR(scaled_span_s(found.graph, 2.0) - found.graph.captured_span_s(), 0.010, 1e-5);
  EXPECT_EQ(found.ranks.notes, std::vector<std::string>{});
}

}  // namespace
}  // namespace rubato
