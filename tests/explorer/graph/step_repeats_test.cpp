// Steps that share clocks, against all plans that do.

#include "explorer/graph/step_repeats.hpp"

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/graph/planner.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

// Steps of launches by name: stream 0 computes longest.
struct Steps {
  SmallGraph made{1};
  std::vector<std::string> names;  // of activities, the origin first

  Steps() { made.one_at_a_time(); }
  void launch(const std::string& name, std::uint32_t stream = 0) {
    made.launch(stream, name, KernelClass::gemm, stream == 0 ? 1e-3 : 1e-4);
    names.push_back(name);
  }
};

TEST(StepRepeats, LaunchesFindTheirPartnerOrFollow) {
  Steps run;
  run.launch("before");
  for (const auto& launches : std::vector<std::vector<std::string>>{
           {"a", "c"}, {"a", "b", "side", "c"}, {"a", "other", "b", "side", "lone side", "c"}}) {
    run.made.set_step(
        static_cast<std::uint32_t>(std::count(run.names.begin(), run.names.end(), "a")));
    for (const std::string& name : launches) run.launch(name, name.ends_with("side") ? 1 : 0);
  }
  run.made.set_step({});
  run.launch("after");
  const ExecutionGraph graph = std::move(run.made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid(small_graph_spec(), {small_graph_spec().default_clock});
  const StepRepeats repeats = step_repeats(LaunchCosts(model, grid));

  std::vector<std::pair<std::string, std::uint32_t>> found;  // of a launch: whose clock
  std::vector<std::uint32_t> launches;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph.activities()[i].kind != ActivityKind::launch) continue;
    launches.push_back(i);
  }
  for (const std::uint32_t i : launches) {
    const auto at = std::ranges::find(launches, repeats.played[i]) - launches.begin();
    found.emplace_back(graph.kernels()[index(graph.activities()[i].kernel)].name,
                       static_cast<std::uint32_t>(at));
  }
  // The second step is played: its launches are 3 (a), 4 (b), 5 (side) and 6 (c).
  const std::vector<std::pair<std::string, std::uint32_t>> expected{
      {"before", 3}, {"a", 3},          {"c", 6}, {"a", 3},     {"b", 4},
      {"side", 5},   {"c", 6},          {"a", 3}, {"other", 3}, {"b", 4},
      {"side", 5},   {"lone side", 11}, {"c", 6}, {"after", 6}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(repeats.steps, std::vector<std::uint32_t>{3});
}

TEST(StepRepeats, OneStepAloneSharesNothing) {
  Steps run;
  run.made.set_step(0);
  run.launch("a");
  run.launch("a");
  const ExecutionGraph graph = std::move(run.made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid(small_graph_spec(), {small_graph_spec().default_clock});
  const StepRepeats repeats = step_repeats(LaunchCosts(model, grid));
  EXPECT_EQ(repeats.played, no_repeats(graph).played);
  EXPECT_EQ(repeats.steps, std::vector<std::uint32_t>{1});
}

// Two or three steps of the same kernels, each a little longer or shorter than in the others.
struct RepeatedSteps {
  ExecutionGraph graph;
  std::size_t steps = 0, launches = 0;  // launches of a step
};

RepeatedSteps arbitrary_steps() {
  constexpr std::array kinds{KernelClass::gemm, KernelClass::memset, KernelClass::elementwise};
  const auto steps = *rc::gen::inRange<std::uint32_t>(2, 4);
  const auto launches = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<std::size_t> kernels;
  std::vector<double> time_s;
  for (std::size_t k = 0; k < launches; ++k) {
    kernels.push_back(*rc::gen::inRange<std::size_t>(0, kinds.size()));
    time_s.push_back(uniform(1e-5, 5e-4));
  }
  SmallGraph made(1, 1);
  for (std::uint32_t step = 0; step < steps; ++step) {
    made.set_step(step);
    const auto host = made.host({});
    for (std::size_t k = 0; k < launches; ++k)
      made.launch(0, "kernel " + std::to_string(kernels[k]), kinds[kernels[k]],
                  time_s[k] * uniform(0.8, 1.25), {{host, 0.0, ArcKind::launch_call}});
  }
  return {std::move(made).build(), steps, launches};
}

// Least energy in time of all plans that give every step the same clocks.
double least_shared_energy_j(const RepeatedSteps& run, const GraphModel& model,
                             const ClockGrid& grid, const SwitchModel& switching,
                             double deadline_s) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < run.graph.size(); ++i) {
    if (run.graph.activities()[i].kind == ActivityKind::launch) all.push_back(i);
  }
  GraphSimulator simulator(model, grid);
  std::vector<std::size_t> clock(run.launches, 0);
  double least_j = std::numeric_limits<double>::infinity();
  while (true) {
    GraphPlan plan = uniform_plan(run.graph, grid.default_clock());
    plan.only_main_streams_ask = true;
    for (std::size_t k = 0; k < all.size(); ++k)
      plan.clock_of_activity[all[k]] = id_at<ClockId>(clock[k % run.launches]);
    const GraphRun found = simulator.run(plan, {.switching = switching});
    if (found.span_s <= deadline_s) least_j = std::min(least_j, found.total_energy_j);
    std::size_t k = 0;
    while (k < clock.size() && ++clock[k] == grid.size()) clock[k++] = 0;
    if (k == clock.size()) return least_j;
  }
}

RC_GTEST_PROP(StepRepeats, BoundOptimumPlanInThisOrder, ()) {
  const RepeatedSteps run = arbitrary_steps();
  const GraphModel model(run.graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  SwitchModel switching;
  switching.core = {.stall_s = *rc::gen::element(0.0, 2e-5),
                    .energy_j = 1e-6,
                    .lead_s = *rc::gen::element(0.0, 1e-4)};
  GraphPlanner planner(model, grid, {}, switching);
  const double slack = *rc::gen::element(0.0, 0.02, 0.1, 0.5);
  for (const Granularity grain : {Granularity::launch, Granularity::segment}) {
    const auto results =
        planner.plan(std::vector<GraphQuestion>{{Granularity::run, slack}, {grain, slack}});
    const GraphPlanResult& shared = results[1];
    const double least_j = least_shared_energy_j(run, model, grid, shared.switching,
                                                 shared.deadline_s * (1.0 + rounding));
    RC_ASSERT(shared.found());
    RC_ASSERT(shared.run.span_s <= shared.deadline_s * (1.0 + rounding));
    RC_ASSERT(shared.lower_bound_j <= least_j * (1.0 + rounding));
    RC_ASSERT(least_j <= shared.run.total_energy_j * (1.0 + rounding));
    RC_ASSERT(shared.run.total_energy_j <= results[0].run.total_energy_j * (1.0 + rounding));
    const StepRepeats repeats = step_repeats(LaunchCosts(model, grid));
    for (std::size_t i = 0; i < run.graph.size(); ++i)
      RC_ASSERT(shared.plan.clock_of_activity[i] ==
                shared.plan.clock_of_activity[repeats.played[i]]);
    RC_CLASSIFY(shared.run.total_energy_j <= least_j * (1.0 + rounding), "the plan is the best");
  }
}

}  // namespace
}  // namespace rubato
