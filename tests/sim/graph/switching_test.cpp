// Changes of clock that take time and energy, on execution graphs.

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/graph/simulator.hpp"
#include "tests/arbitrary_switching.hpp"
#include "tests/slow_graph_replay.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Sums of some dozen numbers, and work left that is divided and multiplied again.

// In steady state: the second of two runs.
SlowReplay slow_steady(const GraphModel& model, const ClockGrid& grid, const GraphPlan& plan,
                       const SwitchModel& switching) {
  // As the simulator begins: with the clock that was asked for last.
  SlowReplay first(model, grid, plan, switching);
  first.hold_last_clocks();
  first.run();
  SlowReplay second(model, grid, plan, switching);
  second.follow(first);
  second.run();
  return second;
}

RC_GTEST_PROP(GraphSwitching, AgreesWithItsRulesStepByStep, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  GraphPlan plan = arbitrary_plan(graph, grid);
  plan.only_main_streams_ask = *rc::gen::arbitrary<bool>();
  const SwitchModel switching = arbitrary_switching();
  const GraphRun run = GraphSimulator(model, grid).run(plan, {.switching = switching});
  const SlowReplay slow = slow_steady(model, grid, plan, switching);
  RC_ASSERT(std::abs(run.span_s - slow.now_s) <= rounding * slow.now_s);
  RC_ASSERT(std::abs(run.total_energy_j - slow.energy_j) <= rounding * slow.energy_j);
  std::uint64_t changes = 0, late = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    RC_ASSERT(std::abs(run.start_s[i] - slow.state(i).start_s) <= rounding * slow.now_s);
    RC_ASSERT(std::abs(run.end_s[i] - slow.state(i).end_s) <= rounding * slow.now_s);
  }
  for (std::size_t g = 0; g < graph.gpus().size(); ++g) {
    RC_ASSERT(run.gpus[g].clock_changes == slow.changes(g));
    RC_ASSERT(run.gpus[g].late_launches == slow.late(g));
    RC_ASSERT(std::abs(run.gpus[g].stalled_s - slow.stalled_s(g)) <= rounding * slow.now_s);
    changes += slow.changes(g);
    late += slow.late(g);
  }
  RC_CLASSIFY(changes > 0, "clocks change");
  RC_CLASSIFY(late > 0, "launches wait for their clock");
}

RC_GTEST_PROP(GraphSwitching, FollowsAnotherRun, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GraphPlan before = arbitrary_plan(graph, grid), plan = arbitrary_plan(graph, grid);
  const SwitchModel switching = arbitrary_switching();
  GraphSimulator simulator(model, grid);
  const GraphRun first = simulator.run(before, {.switching = switching});
  const GraphRun run = simulator.run(plan, {.switching = switching, .after = &first});
  SlowReplay slow(model, grid, plan, switching);
  slow.follow(slow_steady(model, grid, before, switching));
  slow.run();
  RC_ASSERT(std::abs(run.span_s - slow.now_s) <= rounding * slow.now_s);
  RC_ASSERT(std::abs(run.total_energy_j - slow.energy_j) <= rounding * slow.energy_j);
}

// GPU 0 waits in one collective for the other GPU, which comes late, and copies in another one
// while changes stall it: the copy takes longer by the stalls, whichever of both was posted first.
TEST(GraphSwitching, AStallStopsTheTransferOfACollectiveBesideOneThatWaits) {
  for (const bool waiting_first : {true, false}) {
    SmallGraph made(2, 3);
    made.launch(0, "a", KernelClass::gemm, 2e-4);
    made.launch(0, "b", KernelClass::gemm, 2e-4);
    const DraftId late = made.launch(3, "late", KernelClass::gemm, 3e-3);
    if (waiting_first) made.collective({1, 4}, {{}, {{late}}}, 1e-5);
    made.collective({2, 5}, 1e-3);
    if (!waiting_first) made.collective({1, 4}, {{}, {{late}}}, 1e-5);
    const ExecutionGraph graph = std::move(made).build();
    const ClockGrid grid = two_clocks();
    const GraphModel model(graph, small_graph_spec(), grid[ClockId{0}]);
    GraphPlan plan = uniform_plan(graph, ClockId{0});
    plan.only_main_streams_ask = true;
    SwitchModel switching;
    switching.core.stall_s = 1e-4;
    const auto copied_s = [&](const GraphRun& run) {
      for (std::size_t i = 0; i < graph.size(); ++i) {
        if (graph.activities()[i].kind == ActivityKind::transfer && run.start_s[i] < 1e-3)
          return run.end_s[i] - run.start_s[i];
      }
      return 0.0;
    };
    GraphSimulator simulator(model, grid);
    const double alone_s = copied_s(simulator.run(plan, {.switching = switching}));
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const Activity& activity = graph.activities()[i];
      if (activity.kind == ActivityKind::launch &&
          graph.kernels()[index(activity.kernel)].name == "b")
        plan.clock_of_activity[i] = ClockId{1};
    }
    // The clock changes back at the begin of the run (steady state) and again before b.
    const GraphRun stalled = simulator.run(plan, {.switching = switching});
    EXPECT_NEAR(stalled.gpus[0].stalled_s, 2e-4, 1e-9) << waiting_first;
    EXPECT_NEAR(copied_s(stalled) - alone_s, 2e-4, 1e-9) << waiting_first;
  }
}

// Whatever launches asked for, asked for by time: the same run.
RC_GTEST_PROP(GraphSwitching, ClocksByTimeGiveTheSameRunAsLaunchesThatAsk, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const GraphPlan asked = arbitrary_plan(graph, grid);
  // With a latency or a dwell a run depends on when the one before it changed last.
  SwitchModel switching;
  if (*rc::gen::arbitrary<bool>()) switching.core = arbitrary_cost();
  switching.core.lead_s = 0.0;
  GraphSimulator simulator(model, grid);
  const GraphRun run = simulator.run(asked, {.phases = true, .switching = switching});
  GraphPlan played = uniform_plan(graph, grid.default_clock());
  played.timed.resize(graph.gpus().size());
  for (const GpuPhase& phase : run.phases) {
    auto& own = played.timed[index(phase.gpu)];
    if (own.empty() || own.back().clock != phase.clock) own.push_back({phase.start_s, phase.clock});
  }
  // Where runs of launches that ask do not settle, each meets another clock than the one before.
  for (const auto& own : played.timed) {
    if (own.front().clock != own.back().clock) return;
  }
  const GraphRun again = simulator.run(played, {.switching = switching});
  constexpr double apart = 10 * rounding;  // changes may come early by rounding, each of them
  RC_ASSERT(std::abs(again.span_s - run.span_s) <= apart * run.span_s);
  RC_ASSERT(std::abs(again.total_energy_j - run.total_energy_j) <= apart * run.total_energy_j);
  std::uint64_t changes = 0;
  for (std::size_t g = 0; g < graph.gpus().size(); ++g) {
    RC_ASSERT(again.gpus[g].clock_changes == run.gpus[g].clock_changes);
    changes += run.gpus[g].clock_changes;
  }
  RC_CLASSIFY(changes > 0, "clocks change");
}

// A GPU takes no energy after the end of the run, whatever of a change is still to come by then:
// energy is power over the time of the run, and what changes cost.
RC_GTEST_PROP(GraphSwitching, NothingIsBookedAfterTheEnd, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  SwitchModel switching = arbitrary_switching();
  switching.core.lead_s *= 10.0;
  switching.core.stall_s *= 10.0;
  GraphSimulator simulator(model, grid);
  GraphPlan plan = arbitrary_plan(graph, grid);
  const double span_s = simulator.run(plan).span_s;
  for (std::size_t g = 0; g < graph.gpus().size(); ++g) {
    auto& own = plan.timed.emplace_back();
    const auto changes = *rc::gen::inRange(1, 5);
    for (int k = 0; k < changes; ++k)
      own.push_back({uniform(0.0, 1.5 * span_s),
                     id_at<ClockId>(*rc::gen::inRange<std::size_t>(0, grid.size()))});
    std::ranges::sort(own, {}, &TimedClock::from_s);
  }
  const GraphRun run = simulator.run(plan, {.phases = true, .switching = switching});
  const auto gpus = graph.gpus().size();
  std::vector<double> energy_j(gpus), since_s(gpus), power_w(gpus);
  const auto pass = [&](std::size_t g, double to_s) {
    energy_j[g] += power_w[g] * (to_s - since_s[g]);
    since_s[g] = to_s;
  };
  for (const GpuPhase& phase : run.phases) {
    RC_ASSERT(phase.start_s <= run.span_s);
    pass(index(phase.gpu), phase.start_s);
    power_w[index(phase.gpu)] = phase.power_w;
  }
  for (std::size_t g = 0; g < gpus; ++g) {
    const GpuTotals& totals = run.gpus[g];
    pass(g, run.span_s);
    energy_j[g] += static_cast<double>(totals.clock_changes) * switching.core.energy_j;
    RC_ASSERT(std::abs(totals.energy_j - energy_j[g]) <= rounding * energy_j[g]);
    const double most_s = run.span_s * (1.0 + rounding);
    RC_ASSERT(totals.busy_s <= most_s && totals.stalled_s <= most_s);
    RC_ASSERT(totals.switch_energy_j <= totals.energy_j * (1.0 + rounding));
    RC_CLASSIFY(run.left_behind[g].stalled_until_s > 0.0, "ends in a stall");
  }
}

// Runs that follow each other: what one does not have of a stall, the next has.
TEST(GraphSwitching, AStallGoesOnInTheNextRun) {
  const ExecutionGraph graph = one_launch(1e-3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = two_clocks();
  const ClockId low = *grid.find("1593/705");
  GraphSimulator simulator(model, grid);
  const GraphPlan plain = uniform_plan(graph, low);
  SwitchModel switching;
  switching.core.stall_s = 3e-4;
  GraphRun before;
  before.left_behind = {{low, 2e-4, 2e-4}};
  const GraphRun run = simulator.run(plain, {.switching = switching, .after = &before});
  EXPECT_NEAR(run.gpus[0].stalled_s, 2e-4, 1e-12);
  EXPECT_NEAR(run.span_s, simulator.run(plain).span_s + 2e-4, 1e-9);
  EXPECT_EQ(run.gpus[0].clock_changes, 0U);
}

// A change asked for too early waits, one after the end never comes.
TEST(GraphSwitching, ClocksByTimeKeepTheirDistance) {
  const ExecutionGraph graph = one_launch(1e-3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = two_clocks();
  const ClockId high = grid.default_clock(), low = *grid.find("1593/705");
  SwitchModel switching;
  switching.core.lead_s = 3e-4;
  GraphPlan plan = uniform_plan(graph, high);
  plan.timed = {{{0.0, high}, {1e-4, low}, {2e-4, high}, {5.0, low}, {6.0, high}}};
  GraphSimulator simulator(model, grid);
  const GraphRun run = simulator.run(plan, {.phases = true, .switching = switching});
  std::vector<double> changes_s;
  for (std::size_t k = 1; k < run.phases.size(); ++k) {
    if (run.phases[k].clock != run.phases[k - 1].clock) changes_s.push_back(run.phases[k].start_s);
  }
  ASSERT_EQ(changes_s.size(), 2U);
  EXPECT_NEAR(changes_s[0], 1e-4, 1e-12);
  EXPECT_NEAR(changes_s[1], 4e-4, 1e-12);
  EXPECT_GT(run.span_s, 1e-3);
  EXPECT_LT(run.span_s, 1.3e-3);
  EXPECT_EQ(run.gpus[0].late_launches, 1U);
}

}  // namespace
}  // namespace rubato
