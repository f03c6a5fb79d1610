// Plans on execution graphs whose changes of clock take time, against all plans there are.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/graph/planner.hpp"
#include "explorer/graph/sequences/gpu_sequence.hpp"
#include "explorer/plan/defaults.hpp"
#include "tests/expect_error.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

constexpr double no_plan_j = std::numeric_limits<double>::infinity();

SwitchModel short_switching() {
  const auto some = [](double most) {
    return *rc::gen::arbitrary<bool>() ? uniform(0.0, most) : 0.0;
  };
  SwitchModel model;
  model.core = {.stall_s = some(1e-4), .energy_j = some(0.005), .lead_s = some(8e-4)};
  model.dwell_s = some(3e-4);
  if (model.is_free()) model.core.stall_s = 5e-5;
  return model;
}

// Launches whose clocks count: leading ones, and the last one of a GPU that has none, which holds
// the clock that one would have asked for.
std::vector<std::uint32_t> all_leading(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<std::uint32_t> all;
  const auto of_gpus = leading_launches(costs, no_repeats(graph));
  for (std::size_t g = 0; g < of_gpus.size(); ++g) {
    all.insert(all.end(), of_gpus[g].launches.begin(), of_gpus[g].launches.end());
    std::optional<std::uint32_t> last;
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      if (costs.is_clocked(i) && index(*graph.gpu_of(graph.activities()[i])) == g) last = i;
    }
    if (of_gpus[g].launches.empty() && last) all.push_back(*last);
  }
  return all;
}

// Least energy in time over all clocks of all leading launches, replayed with changes counted.
double least_energy_j(const GraphModel& model, const ClockGrid& grid, const SwitchModel& switching,
                      double deadline_s) {
  const std::vector<std::uint32_t> leading = all_leading(LaunchCosts(model, grid));
  GraphSimulator simulator(model, grid);
  GraphPlan plan = uniform_plan(model.graph(), grid.default_clock());
  plan.only_main_streams_ask = true;
  std::vector<std::size_t> clock(leading.size(), 0);
  double least_j = no_plan_j;
  while (true) {
    for (std::size_t k = 0; k < leading.size(); ++k)
      plan.clock_of_activity[leading[k]] = id_at<ClockId>(clock[k]);
    const GraphRun run = simulator.run(plan, {.switching = switching});
    if (run.span_s <= deadline_s) least_j = std::min(least_j, run.total_energy_j);
    std::size_t k = 0;
    while (k < clock.size() && ++clock[k] == grid.size()) clock[k++] = 0;
    if (k == clock.size()) return least_j;
  }
}

// Late changes and those of side streams' making included: bound, optimum, plan in this order.
RC_GTEST_PROP(AutomaticPlans, BoundOptimumPlanInThisOrder, ()) {
  const bool one_at_a_time = *rc::gen::arbitrary<bool>();
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 3, .most_launches = 8, .one_at_a_time = one_at_a_time});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 4));
  if (all_leading(LaunchCosts(model, grid)).size() > (grid.size() == 2 ? 8u : 5u)) return;
  const SwitchModel switching = with_long_stretches(short_switching());  // as plans keep to
  GraphPlanner planner(model, grid, {}, switching);
  const double slack = *rc::gen::element(0.0, 0.01, 0.1, 0.3, 1.0);
  const auto results = planner.plan(std::vector<GraphQuestion>{
      {Granularity::run, slack}, {Granularity::gpu, slack}, {Granularity::segment, slack}});
  const GraphPlanResult& found = results[2];
  const double least_j =
      least_energy_j(model, grid, switching, found.deadline_s * (1.0 + rounding));
  RC_ASSERT(found.found());
  RC_ASSERT(found.lower_bound_j <= least_j * (1.0 + rounding));
  RC_ASSERT(least_j <= found.run.total_energy_j * (1.0 + rounding));
  RC_ASSERT(found.run.span_s <= found.deadline_s * (1.0 + rounding));
  for (const GraphPlanResult& coarser : results)
    RC_ASSERT(found.run.total_energy_j <= coarser.run.total_energy_j * (1.0 + rounding));
  // Its replay is the simulator's, changes counted.
  const GraphRun again = GraphSimulator(model, grid).run(found.plan, {.switching = switching});
  RC_ASSERT(again.total_energy_j == found.run.total_energy_j);
  RC_ASSERT(again.span_s == found.run.span_s);
  std::uint64_t changes = 0;
  for (const GpuTotals& gpu : again.gpus) changes += gpu.clock_changes;
  RC_CLASSIFY(changes > 0, "clocks change");
  RC_CLASSIFY(!one_at_a_time, "launches may run beside each other");
  RC_CLASSIFY(found.run.total_energy_j <= least_j * (1.0 + rounding), "the plan is the best");
}

// Overlap and collectives: in time with changes counted, and no dearer than one clock.
RC_GTEST_PROP(AutomaticPlans, AreNeverLate, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  GraphPlanner planner(model, grid, {}, short_switching());
  std::vector<GraphQuestion> questions;
  for (const double slack : {0.0, 0.05, 0.4}) {
    for (const Granularity grain : {Granularity::run, Granularity::segment})
      questions.push_back({grain, slack});
  }
  const auto results = planner.plan(questions);
  for (std::size_t q = 1; q < results.size(); q += 2) {
    RC_ASSERT(results[q].found());
    RC_ASSERT(results[q].run.span_s <= results[q].deadline_s * (1.0 + rounding));
    RC_ASSERT(results[q].run.total_energy_j <=
              results[q - 1].run.total_energy_j * (1.0 + rounding));
  }
}

// A latency as long as the run leaves room for one change or two, whatever the prices: the bound of
// changes that are free is passed.
TEST(AutomaticPlans, ALatencyRaisesTheBound) {
  SmallGraph made(1);
  for (int i = 0; i < 12; ++i)
    made.launch(0, i % 2 == 0 ? "gemm" : "memset",
                i % 2 == 0 ? KernelClass::gemm : KernelClass::memset, 1e-4);
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = two_clocks();
  const auto bound_j = [&](double lead_s) {
    SwitchModel switching;
    switching.core.lead_s = lead_s;
    switching.core.energy_j = 1e-9;
    GraphPlanner planner(model, grid, {}, switching);
    const auto found = planner.plan(std::vector<GraphQuestion>{{Granularity::segment, 0.1}});
    EXPECT_TRUE(found[0].found());
    EXPECT_LE(found[0].lower_bound_j, found[0].run.total_energy_j * (1.0 + rounding));
    return found[0].lower_bound_j;
  };
  EXPECT_GT(bound_j(8e-4), bound_j(0.0) * 1.001);
}

// Two GPUs alike, a deadline between two clocks for all: half of each at one clock, half at the
// other is a plan, but for what runs on while a change is under way.
TEST(AutomaticPlans, TakeNoMoreThanAMixOfTwoClocks) {
  SmallGraph made(2);
  for (int i = 0; i < 60; ++i) {
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) made.launch(gpu, "gemm", KernelClass::gemm, 1e-4);
  }
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid full = make_clock_grid(small_graph_spec(), "full");
  const auto single = sweep_uniform(model, full);
  const ClockId least = std::ranges::min_element(single, {}, &UniformRun::energy_j)->clock;
  const ClockGrid grid(small_graph_spec(), {small_graph_spec().default_clock, full[least]});
  ASSERT_EQ(grid.size(), 2u);
  GraphPlanner planner(model, grid, {}, SwitchModel{.core = {.lead_s = 1e-3}, .mem = {}});
  const UniformRun fast = planner.uniform()[index(grid.default_clock())];
  const UniformRun slow = planner.uniform()[1 - index(grid.default_clock())];
  ASSERT_LT(slow.energy_j, fast.energy_j);
  const double slack = 0.5 * (slow.span_s / fast.span_s - 1.0);
  const auto found =
      planner.plan(std::vector<GraphQuestion>{{Granularity::segment, slack}}).front();
  ASSERT_TRUE(found.found());
  EXPECT_LE(found.run.span_s, found.deadline_s * (1.0 + rounding));
  // One launch in sixty at most is at the other clock than it would be in the mix.
  EXPECT_LE(found.run.total_energy_j,
            0.5 * (fast.energy_j + slow.energy_j) + (fast.energy_j - slow.energy_j) / 30.0);
}

TEST(AutomaticPlans, NeedToKnowWhatChangesTake) {
  const ExecutionGraph graph = one_launch(1e-3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  GraphPlanner planner(model, arbitrary_clocks(1));
  expect_error<UsageError>(
      [&] {
        static_cast<void>(planner.plan(std::vector<GraphQuestion>{{Granularity::segment, 0.0}}));
      },
      "automatic plans need to know what switches take");
  SwitchModel wrong;
  wrong.core.stall_s = -1.0;
  expect_error<UsageError>([&] { GraphPlanner(model, arbitrary_clocks(1), {}, wrong); },
                           "switching: core stall_s is -1");
}

}  // namespace
}  // namespace rubato
