#include "sim/graph/simulator.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "models/kernel/model.hpp"
#include "tests/expect_error.hpp"
#include "tests/slow_graph_replay.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Sums of some dozen numbers, and work left that is divided and multiplied again.

RC_GTEST_PROP(GraphSimulator, AgreesWithItsRulesStepByStep, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 4, .most_launches = 12});
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  GraphSimulator simulator(model, grid);
  for (int repeat = 0; repeat < 2; ++repeat) {  // what it kept of the first plan is no hindrance
    const GraphPlan plan = arbitrary_plan(graph, grid);
    const GraphRun run = simulator.run(plan);
    SlowReplay slow(model, grid, plan);
    slow.run();
    RC_ASSERT(std::abs(run.span_s - slow.now_s) <= rounding * slow.now_s);
    RC_ASSERT(std::abs(run.total_energy_j - slow.energy_j) <= rounding * slow.energy_j);
    for (std::size_t i = 0; i < graph.size(); ++i) {
      RC_ASSERT(std::abs(run.start_s[i] - slow.state(i).start_s) <= rounding * slow.now_s);
      RC_ASSERT(std::abs(run.end_s[i] - slow.state(i).end_s) <= rounding * slow.now_s);
      RC_ASSERT(std::abs(run.energy_j[i] - slow.state(i).energy_j) <= rounding * slow.energy_j);
    }
    for (std::size_t g = 0; g < graph.gpus().size(); ++g)
      RC_ASSERT(run.gpus[g].clock_changes == slow.changes(g));
  }
}

RC_GTEST_PROP(GraphSimulator, TheSameBitsEachTimeAndPhasesSumUp, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GraphPlan plan = arbitrary_plan(graph, grid);
  GraphSimulator simulator(model, grid);
  const GraphRun first = simulator.run(plan);
  static_cast<void>(simulator.run(arbitrary_plan(graph, grid)));
  const GraphRun again = simulator.run(plan, {.phases = true});
  const GraphRun fresh = GraphSimulator(model, grid).run(plan);
  RC_ASSERT(first.start_s == again.start_s && first.start_s == fresh.start_s);
  RC_ASSERT(first.end_s == again.end_s && first.end_s == fresh.end_s);
  RC_ASSERT(first.total_energy_j == again.total_energy_j);
  RC_ASSERT(first.total_energy_j == fresh.total_energy_j);
  RC_ASSERT(first.phases.empty());

  std::vector<double> energy_j(graph.gpus().size(), 0.0), busy_s(energy_j), limited_s(energy_j);
  for (std::size_t p = 0; p < again.phases.size(); ++p) {
    const GpuPhase& phase = again.phases[p];
    double end_s = again.span_s;
    for (std::size_t q = p + 1; q < again.phases.size(); ++q) {
      RC_ASSERT(again.phases[q].start_s >= phase.start_s);
      if (again.phases[q].gpu != phase.gpu) continue;
      end_s = again.phases[q].start_s;
      break;
    }
    const std::size_t g = index(phase.gpu);
    energy_j[g] += phase.power_w * (end_s - phase.start_s);
    if (phase.running > 0) busy_s[g] += end_s - phase.start_s;
    if (phase.power_limited) limited_s[g] += end_s - phase.start_s;
  }
  double total_j = 0.0;
  for (std::size_t g = 0; g < energy_j.size(); ++g) {
    const GpuTotals& gpu = again.gpus[g];
    RC_ASSERT(std::abs(energy_j[g] - gpu.energy_j) <= rounding * gpu.energy_j);
    RC_ASSERT(std::abs(busy_s[g] - gpu.busy_s) <= rounding * again.span_s);
    RC_ASSERT(std::abs(limited_s[g] - gpu.power_limited_s) <= rounding * again.span_s);
    total_j += gpu.energy_j;
  }
  RC_ASSERT(std::abs(total_j - again.total_energy_j) <= rounding * total_j);
}

// Captured clocks give captured times back, whatever ran beside what.
RC_GTEST_PROP(GraphSimulator, ReproducesTheCapture, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 4, .most_launches = 12});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(1);
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, grid.default_clock()));
  const double span_s = graph.captured_span_s();
  for (std::size_t i = 0; i < graph.size(); ++i) {
    RC_ASSERT(std::abs(run.start_s[i] - graph.activities()[i].start_s) <= rounding * span_s);
    RC_ASSERT(std::abs(run.end_s[i] - graph.activities()[i].end_s()) <= rounding * span_s);
  }
}

// A capture ran under the card's own limit: a lower one makes the run longer, a capture anchored at
// the lower one would come out as it was.
TEST(GraphSimulator, ALowerPowerLimitThanTheCapturesTakesLonger) {
  const ExecutionGraph graph = one_launch(3e-4);
  const GpuSpec& spec = small_graph_spec();
  const ClockGrid grid = arbitrary_clocks(1);
  const auto span_s = [&](std::optional<double> limit_w) {
    const GraphModel model(graph, spec, spec.default_clock, limit_w);
    return GraphSimulator(model, grid).run(uniform_plan(graph, grid.default_clock())).span_s;
  };
  EXPECT_NEAR(span_s({}) / graph.captured_span_s(), 1.0, rounding);
  EXPECT_GT(span_s(spec.power_limit.min_w), 1.05 * span_s({}));
}

struct TwoStreams {
  SmallGraph made{1};
  ClockPair fast = parse_clock_pair(small_graph_spec(), "1593/1410");
  ClockPair slow = parse_clock_pair(small_graph_spec(), "1593/705");
  ClockGrid grid{small_graph_spec(), {fast, slow}};
  ClockId at_fast = *grid.find(fast), at_slow = *grid.find(slow);
};

// One clock per GPU: what the main stream asks for while it runs, else the oldest launch's.
TEST(GraphSimulator, TheMainStreamLeads) {
  TwoStreams made;
  made.made.launch(1, "side", KernelClass::elementwise, 2e-4);
  made.made.launch(0, "main", KernelClass::gemm, 3e-4,
                   {{made.made.host({{GraphBuilder::origin, 1e-4}})}});
  const ExecutionGraph graph = std::move(made.made).build();
  ASSERT_EQ(main_streams(graph), (std::vector<std::uint32_t>{0}));
  GpuSpec spec = small_graph_spec();
  spec.power_limit.limit_w = spec.power_limit.max_w = 1000.0;  // clocks are those asked for
  const GraphModel model(graph, spec, made.fast);
  GraphPlan plan = uniform_plan(graph, made.at_fast);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (graph.activities()[i].stream == 1U) plan.clock_of_activity[i] = made.at_slow;
  }
  const GraphRun run = GraphSimulator(model, made.grid).run(plan, {.phases = true});
  EXPECT_EQ(run.gpus[0].clock_changes, 1u);
  std::vector<std::pair<std::uint32_t, double>> seen;
  for (const GpuPhase& phase : run.phases) {
    if (seen.empty() || seen.back() != std::pair(phase.running, phase.core_mhz))
      seen.emplace_back(phase.running, phase.core_mhz);
  }
  const double fast_mhz = effective_core_mhz(small_graph_spec(), made.fast);
  const double slow_mhz = effective_core_mhz(small_graph_spec(), made.slow);
  using Seen = std::vector<std::pair<std::uint32_t, double>>;
  // Idle as the first launch asks, alone, both, main alone, and what it had at the end.
  EXPECT_EQ(seen,
            (Seen{{0, slow_mhz}, {1, slow_mhz}, {2, fast_mhz}, {1, fast_mhz}, {0, fast_mhz}}));
}

TEST(GraphSimulator, ARankThatWaitsInACollectiveHoldsItsSms) {
  SmallGraph made(2);
  made.launch(0, "early", KernelClass::gemm, 1e-4);
  made.launch(2, "late", KernelClass::gemm, 5e-4);
  made.collective({0, 2}, 1e-4);
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(1);
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, grid.default_clock()));
  EXPECT_NEAR(run.span_s, 6e-4, 1e-12);
  EXPECT_NEAR(run.gpus[0].busy_s, 6e-4, 1e-12);  // 1e-4 of work, 5e-4 in the collective
  EXPECT_NEAR(run.gpus[1].busy_s, 6e-4, 1e-12);
  EXPECT_LT(run.gpus[0].energy_j, run.gpus[1].energy_j);
}

TEST(GraphSimulator, ACollectiveOfNoLengthIsNoTrouble) {
  SmallGraph made(2);
  made.collective({0, 2}, 0.0);
  made.launch(0, "gemm", KernelClass::gemm, 1e-4);
  made.collective({0, 2}, 0.0);
  made.collective({1, 3}, 0.0);
  made.launch(3, "gemm", KernelClass::gemm, 2e-4);
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(1);
  const GraphRun run = GraphSimulator(model, grid).run(uniform_plan(graph, grid.default_clock()));
  EXPECT_NEAR(run.span_s, 2e-4, 1e-12);  // the two pairs of streams do not wait for each other
}

TEST(GraphSimulator, RejectsWhatDoesNotFit) {
  const ExecutionGraph graph = one_launch(1e-4);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(1);
  GraphSimulator simulator(model, grid);
  expect_error<DataError>([&] { static_cast<void>(simulator.run({})); },
                          "the plan has 0 clocks; expected 2, one per activity");
  expect_error<DataError>(
      [&] { static_cast<void>(simulator.run(uniform_plan(graph, ClockId{9}))); },
      "the plan asks for clock 9; there are 1");
  using Timed = std::vector<TimedClock>;
  for (const std::vector<Timed>& timed : {std::vector<Timed>{{}},
                                          {{{0.0, ClockId{1}}}},
                                          {{{2e-5, ClockId{0}}, {1e-5, ClockId{0}}}},
                                          {{{-1.0, ClockId{0}}}},
                                          {{{0.0, ClockId{0}}}, {{0.0, ClockId{0}}}}}) {
    GraphPlan plan = uniform_plan(graph, ClockId{0});
    plan.timed = timed;
    expect_error<DataError>([&] { static_cast<void>(simulator.run(plan)); },
                            "the plan's clocks by time do not fit the GPUs");
  }
  expect_error<UsageError>(
      [&] { GraphModel(graph, small_graph_spec(), small_graph_spec().default_clock, 5000.0); },
      "a power limit of 5000 W is outside what a100-sxm4-80gb accepts");
}

}  // namespace
}  // namespace rubato
