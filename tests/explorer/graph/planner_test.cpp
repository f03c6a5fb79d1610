#include "explorer/graph/planner.hpp"

#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/graph/launch_units.hpp"
#include "explorer/graph/rehearsal.hpp"
#include "explorer/graph/unit_search.hpp"
#include "tests/arbitrary_switching.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/graph/all_plans.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

constexpr std::array grains{Granularity::run, Granularity::gpu, Granularity::pass,
                            Granularity::kernel, Granularity::launch};

// Launches one after the other on each GPU, so that nothing slows anything else down: the bound is
// below what any plan takes, and what any plan takes is below what the planner found.
RC_GTEST_PROP(GraphPlanner, BoundOptimumPlanInThisOrder, ()) {
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 4, .most_launches = 12, .one_at_a_time = true});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(clocks_for(clocked_launches(model)));
  GraphPlanner planner(model, grid);
  const double slack = *rc::gen::element(0.0, 0.01, 0.1, 0.3, 1.0, -0.05);
  const double deadline_s = planner.baseline().span_s * (1.0 + slack);
  std::vector<GraphQuestion> questions;
  for (const Granularity grain : grains) questions.push_back({grain, slack});
  const auto results = planner.plan(questions);
  RC_ASSERT(results.size() == questions.size());
  double coarser_j = std::numeric_limits<double>::infinity();
  for (const GraphPlanResult& result : results) {
    const AllPlans all(model, grid, result.question.grain);
    const double least_j = all.least_j(deadline_s * (1.0 + rounding));
    const bool possible =
        all.least_j(deadline_s * (1.0 - rounding)) < std::numeric_limits<double>::infinity();
    RC_ASSERT(std::abs(result.deadline_s - deadline_s) <= rounding * deadline_s);
    if (!result.found()) {
      // Not found is not infeasible but for clocks that were all tried.
      if (result.question.grain == Granularity::run) RC_ASSERT(!possible);
      RC_ASSERT(result.status == SolveStatus::infeasible);
      continue;
    }
    RC_ASSERT(result.run.span_s <= deadline_s * (1.0 + rounding));
    RC_ASSERT(result.lower_bound_j <= least_j * (1.0 + rounding));
    RC_ASSERT(least_j <= result.run.total_energy_j * (1.0 + rounding));
    RC_ASSERT(result.run.total_energy_j <= coarser_j * (1.0 + rounding));
    coarser_j = std::min(coarser_j, result.run.total_energy_j);
    if (result.question.grain == Granularity::run)
      RC_ASSERT(std::abs(result.run.total_energy_j / least_j - 1.0) <= rounding);
    const double gap = 1.0 - result.lower_bound_j / result.run.total_energy_j;
    RC_ASSERT(std::abs(result.gap_frac - std::max(gap, 0.0)) <= rounding);
    // The plan is of its grain, and its replay is the simulator's.
    std::uint32_t count = 0;
    const auto unit = units_by_definition(model, result.question.grain, count);
    std::vector<std::optional<ClockId>> clock(count);
    for (std::size_t i = 0; i < unit.size(); ++i) {
      if (model.work()[i] <= 0.0) continue;
      auto& known = clock[unit[i]];
      if (known) RC_ASSERT(index(*known) == index(result.plan.clock_of_activity[i]));
      known = result.plan.clock_of_activity[i];
    }
    const GraphRun again = GraphSimulator(model, grid).run(result.plan);
    RC_ASSERT(again.total_energy_j == result.run.total_energy_j);
    RC_ASSERT(again.span_s == result.run.span_s);
  }
}

// Overlap and collectives: plans are in time by the simulator, and finer ones are no dearer.
RC_GTEST_PROP(GraphPlanner, PlansAreNeverLate, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  GraphPlanner planner(model, grid);
  std::vector<GraphQuestion> questions;
  for (const double slack : {0.0, 0.05, 0.4}) {
    for (const Granularity grain : grains) questions.push_back({grain, slack});
  }
  const auto results = planner.plan(questions);
  for (std::size_t q = 0; q < results.size(); ++q) {
    const GraphPlanResult& result = results[q];
    RC_ASSERT(result.found());  // the default clocks are one
    RC_ASSERT(result.run.span_s <= result.deadline_s * (1.0 + rounding));
    RC_ASSERT(result.run.total_energy_j <= planner.baseline().total_energy_j * (1.0 + rounding));
    for (std::size_t p = 0; p < q; ++p) {
      if (questions[p].grain <= questions[q].grain &&
          questions[p].slack_frac <= questions[q].slack_frac)
        RC_ASSERT(result.run.total_energy_j <= results[p].run.total_energy_j * (1.0 + rounding));
    }
  }
}

// Overlap and collectives: each question asked alone finds what it finds beside the others, finer
// plans are no dearer than coarser ones, more time never costs energy, and bounds fall with time.
RC_GTEST_PROP(GraphPlanner, AnswersDoNotDependOnWhatIsAskedBeside, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  std::vector<GraphQuestion> questions;
  for (const double slack : {0.0, 0.02, 0.1, 0.5}) {
    for (const Granularity grain : grains) questions.push_back({grain, slack});
  }
  const auto together = GraphPlanner(model, grid).plan(questions);
  std::vector<GraphPlanResult> alone;
  for (const GraphQuestion& question : questions)
    alone.push_back(GraphPlanner(model, grid).plan(std::span(&question, 1)).front());
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const double energy_j = alone[q].run.total_energy_j;
    RC_ASSERT(std::abs(energy_j - together[q].run.total_energy_j) <= rounding * energy_j);
    for (std::size_t p = 0; p < questions.size(); ++p) {
      if (questions[p].slack_frac > questions[q].slack_frac) continue;
      if (questions[p].grain <= questions[q].grain)
        RC_ASSERT(energy_j <= alone[p].run.total_energy_j * (1.0 + rounding));
      if (questions[p].grain == questions[q].grain && questions[p].grain != Granularity::run)
        RC_ASSERT(together[p].lower_bound_j >= together[q].lower_bound_j);
    }
  }
}

// Also at slacks that other questions do not look at, and of segments, whose plans are made with
// those of other questions.
RC_GTEST_PROP(GraphPlanner, NoSlackBesideChangesAPlan, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 2, .most_launches = 10});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  const SwitchModel switching = arbitrary_switching();
  const auto answers = [&](const std::vector<double>& slacks) {
    GraphPlanner planner(model, grid, {}, switching);
    std::vector<GraphQuestion> questions;
    for (const double slack : slacks) {
      for (const Granularity grain : {Granularity::pass, Granularity::kernel, Granularity::segment})
        questions.push_back({grain, slack});
    }
    return rehearsed_answers(model, planner, model, questions, 0.0, {});
  };
  const std::vector<double> slacks{0.0, 0.07, 0.08};
  const auto together = answers(slacks);
  for (std::size_t s = 0; s < slacks.size(); ++s) {
    const auto alone = answers({slacks[s]});
    for (std::size_t g = 0; g < alone.size(); ++g) {
      const GraphPlanOutcome &a = alone[g], &b = together[s * alone.size() + g];
      RC_ASSERT(a.result.found() == b.result.found());
      RC_ASSERT(std::abs(a.result.run.total_energy_j - b.result.run.total_energy_j) <=
                rounding * a.result.run.total_energy_j);
    }
  }
}

// A chain without gaps on one stream: at the times of the frontier's vertices every launch is at a
// clock of its own, and nothing is left between plan and bound.
RC_GTEST_PROP(GraphPlanner, TheGapClosesAtVertices, ()) {
  SmallGraph made(1);
  const auto launches = *rc::gen::inRange(2, 10);
  for (int i = 0; i < launches; ++i) {
    made.launch(0, fmt::format("kernel {}", i % 3),
                i % 3 == 1 ? KernelClass::memset : KernelClass::gemm, uniform(1e-5, 5e-4));
  }
  const ExecutionGraph graph = std::move(made).build();
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 5));
  GraphPlanner planner(model, grid);
  const double idle_w = LaunchCosts(model, grid).least_idle_w();
  int exact = 0;
  for (const FrontierVertex& vertex : planner.frontier().vertices) {
    // Where a plan that ends earlier is cheaper, idle power rewards it and no vertex is exact.
    if (vertex.price_w < idle_w) continue;
    constexpr double later = 1e-10;  // than the vertex, worth its price
    const double slack = vertex.time_s * (1.0 + later) / planner.baseline().span_s - 1.0;
    const auto results = planner.plan(std::vector<GraphQuestion>{{Granularity::launch, slack}});
    RC_ASSERT(results[0].found());
    const double worth_j = vertex.price_w * later * vertex.time_s;
    RC_ASSERT(results[0].gap_frac <= 1e-9 + worth_j / results[0].run.total_energy_j);
    RC_ASSERT((results[0].status == SolveStatus::optimal) == (results[0].gap_frac <= 1e-9));
    ++exact;
  }
  RC_CLASSIFY(exact > 0, "some vertex is worth more than idle power");
}

TEST(GraphPlanner, DeadlinesThatNoClockMeetsAreInfeasible) {
  const ExecutionGraph graph = one_launch(1e-3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(1);
  GraphPlanner planner(model, grid);
  std::vector<GraphQuestion> questions;
  for (const Granularity grain : grains) questions.push_back({grain, -0.5});
  for (const GraphPlanResult& result : planner.plan(questions)) {
    EXPECT_FALSE(result.found());
    EXPECT_EQ(result.status, SolveStatus::infeasible);
    EXPECT_NEAR(result.deadline_s, 5e-4, 1e-12);
  }
}

TEST(GraphPlanner, AbsurdSlacksAreRefused) {
  const ExecutionGraph graph = one_launch(1e-3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  GraphPlanner planner(model, arbitrary_clocks(1));
  const auto ask = [&](double slack) {
    static_cast<void>(planner.plan(std::vector<GraphQuestion>{{Granularity::launch, slack}}));
  };
  expect_error<UsageError>([&] { ask(-1.0); }, "slack is -100; expected a number above -100 %");
  expect_error<UsageError>([&] { ask(-3.0); }, "slack is -300");
  expect_error<UsageError>([&] { ask(std::nan("")); }, "slack is nan");
  expect_error<UsageError>([&] { ask(std::numeric_limits<double>::infinity()); }, "slack is inf");
}

// Launches one after the other: no unit's launches take longer than the slack allows, and at no
// clock that keeps this do they take less energy, as the simulator says at one clock for all.
RC_GTEST_PROP(GraphPlanner, LocalPlansAreBestUnitByUnit, ()) {
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 3, .most_launches = 8, .one_at_a_time = true});
  const GraphModel board(graph, small_graph_spec(), small_graph_spec().default_clock);
  const double host_w = *rc::gen::element(0.0, 150.0);
  const GraphModel model = board.with_host_power(host_w);
  const ClockGrid grid = arbitrary_clocks(*rc::gen::inRange<std::size_t>(2, 6));
  GraphPlanner planner(model, grid);
  GraphSimulator simulator(model, grid);
  std::vector<GraphRun> at_clock;
  for (std::size_t c = 0; c < grid.size(); ++c)
    at_clock.push_back(simulator.run(uniform_plan(graph, id_at<ClockId>(c))));
  std::vector<GraphQuestion> questions;
  for (const Granularity grain : {Granularity::gpu, Granularity::kernel, Granularity::launch}) {
    for (const double slack : {0.0, 0.05, 0.4})
      questions.push_back({.grain = grain, .slack_frac = slack, .aggregation = Aggregation::local});
  }
  for (const GraphPlanResult& result : planner.plan(questions)) {
    RC_ASSERT(result.found());  // the default clocks are one
    RC_ASSERT(result.lower_bound_j <= result.run.total_energy_j * (1.0 + rounding));
    std::uint32_t units = 0;
    const auto unit_of = units_by_definition(model, result.question.grain, units);
    for (std::uint32_t unit = 0; unit < units; ++unit) {
      const auto sum = [&](const std::vector<double>& values) {
        double of_unit = 0.0;
        for (std::size_t i = 0; i < graph.size(); ++i)
          if (model.work()[i] > 0.0 && unit_of[i] == unit) of_unit += values[i];
        return of_unit;
      };
      const auto time_s = [&](const GraphRun& run) { return sum(run.end_s) - sum(run.start_s); };
      const auto node_j = [&](const GraphRun& run) {
        return sum(run.energy_j) + host_w * time_s(run);
      };
      const double limit_s = (1.0 + result.question.slack_frac) *
                             time_s(at_clock[index(grid.default_clock())]) * (1.0 + rounding);
      RC_ASSERT(time_s(result.run) <= limit_s);
      for (const GraphRun& other : at_clock) {
        if (time_s(other) < limit_s * (1.0 - 2.0 * rounding))
          RC_ASSERT(node_j(result.run) <= node_j(other) * (1.0 + rounding));
      }
    }
  }
}

// What is asked beside a local plan does not change it, and it changes nothing beside it.
RC_GTEST_PROP(GraphPlanner, LocalPlansAreInTimeAndStandAlone, ()) {
  const ExecutionGraph graph = arbitrary_graph({.most_gpus = 3, .most_launches = 10});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(3);
  std::vector<GraphQuestion> global, all;
  for (const Granularity grain : grains) {
    global.push_back({.grain = grain, .slack_frac = 0.05});
    all.push_back({.grain = grain, .slack_frac = 0.05, .aggregation = Aggregation::local});
  }
  all.insert(all.end(), global.begin(), global.end());
  const auto together = GraphPlanner(model, grid).plan(all);
  const auto without = GraphPlanner(model, grid).plan(global);
  for (std::size_t q = 0; q < grains.size(); ++q) {
    const GraphPlanResult &local = together[q], &beside = together[grains.size() + q];
    RC_ASSERT(beside.plan.clock_of_activity == without[q].plan.clock_of_activity);
    if (local.found()) RC_ASSERT(local.run.span_s <= local.deadline_s * (1.0 + rounding));
    const auto alone = GraphPlanner(model, grid).plan({&all[q], 1});
    RC_ASSERT(alone.front().plan.clock_of_activity == local.plan.clock_of_activity);
  }
}

TEST(Granularities, NamesAreReadBack) {
  for (const Granularity grain : grains) EXPECT_EQ(granularity_named(name_of(grain)), grain);
  EXPECT_FALSE(granularity_named("layer"));
}

// Clocks of units on costs of launches alone, by brute force over all of them.
RC_GTEST_PROP(UnitSearch, IsBetweenItsBoundAndTheDeadline, ()) {
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 2, .most_launches = 8, .one_at_a_time = true});
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(clocks_for(clocked_launches(model)));
  const LaunchCosts costs(model, grid);
  const auto grain = *rc::gen::element(Granularity::gpu, Granularity::pass, Granularity::kernel);
  std::uint32_t count = 0;
  const auto unit = units_by_definition(model, grain, count);
  const LaunchUnits units(costs, count, unit);

  struct One {
    double span_s, energy_j;
  };
  std::vector<One> all;
  std::vector<std::size_t> clock(count, 0);
  std::vector<double> duration_s(graph.size()), start_s(graph.size());
  while (true) {
    double energy_j = 0.0;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const auto at = id_at<ClockId>(costs.is_clocked(i) ? clock[unit[i]] : 0);
      duration_s[i] = costs.time_s(i, at);
      energy_j += costs.cost_j(i, at);
    }
    const double span_s = earliest_starts(graph, duration_s, start_s);
    all.push_back({span_s, energy_j + costs.least_idle_w() * span_s});
    std::size_t u = 0;
    while (u < count && ++clock[u] == grid.size()) clock[u++] = 0;
    if (u == count) break;
  }
  const double least_s = std::ranges::min_element(all, {}, &One::span_s)->span_s;
  const double most_s = std::ranges::max_element(all, {}, &One::span_s)->span_s;
  const double deadline_s = uniform(least_s * 0.98, most_s * 1.02);
  double best_j = std::numeric_limits<double>::infinity();
  for (const One& one : all) {
    if (one.span_s <= deadline_s) best_j = std::min(best_j, one.energy_j);
  }
  FrontierOptions options;
  options.times_s = {deadline_s};
  const Frontier frontier = sweep_frontier(crash_problem(launch_work(costs)), options);
  const FrontierPlan& start = frontier.plans[0];
  const LaunchPrices prices{start.flow_w, start.lag_cost_j, start.price_w};
  const UnitDeadline deadline{deadline_s, frontier.least_time_s};
  const UnitPlan found = search_units(costs, units, prices, deadline);
  if (best_j == std::numeric_limits<double>::infinity()) {
    RC_ASSERT(found.clock_of_unit.empty());
    return;
  }
  RC_ASSERT(unit_bound_j(costs, units, prices, deadline) <= best_j * (1.0 + rounding));
  if (found.clock_of_unit.empty()) return;  // it tries the fastest clocks of all units last
  RC_ASSERT(found.span_s <= deadline_s);
  RC_ASSERT(found.energy_j >= best_j * (1.0 - rounding));
  bool known = false;
  for (const One& one : all) {
    known |= std::abs(one.span_s - found.span_s) <= rounding * one.span_s &&
             std::abs(one.energy_j - found.energy_j) <= rounding * one.energy_j;
  }
  RC_ASSERT(known);
}

// Prices that mean nothing still bound, as long as they are a flow: none at all.
TEST(UnitSearch, WithoutPricesTheBoundIsTheLeastOfAllClocks) {
  const ExecutionGraph graph = one_launch(1e-3);
  const GraphModel model(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = two_clocks();
  const LaunchCosts costs(model, grid);
  const LaunchUnits units(costs, 1, std::vector<std::uint32_t>(graph.size(), 0));
  double least_j = std::numeric_limits<double>::infinity(), least_s = least_j, most_s = 0.0;
  for (std::size_t c = 0; c < grid.size(); ++c) {
    const double time_s = costs.time_s(1, id_at<ClockId>(c));
    least_s = std::min(least_s, time_s);
    most_s = std::max(most_s, time_s);
    least_j = std::min(least_j, costs.cost_j(1, id_at<ClockId>(c)) + costs.least_idle_w() * time_s);
  }
  const LaunchPrices none{std::vector<double>(graph.size(), 0.0), 0.0, 0.0};
  const double bound_j = unit_bound_j(costs, units, none, {most_s * 2.0, least_s});
  EXPECT_LE(bound_j, least_j * (1.0 + rounding));
  EXPECT_GE(bound_j, 0.5 * least_j);
}

}  // namespace
}  // namespace rubato
