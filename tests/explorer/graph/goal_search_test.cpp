#include "explorer/graph/goal_search.hpp"

#include <cmath>
#include <limits>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/arbitrary_switching.hpp"
#include "tests/explorer/graph/all_plans.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

constexpr std::array all_grains{Granularity::run, Granularity::gpu, Granularity::pass,
                                Granularity::kernel, Granularity::launch};

// What a goal comes to, by its definition; infinite beyond its budget.
double goal_value(const Goal& goal, double gpus, double time_s, double energy_j) {
  if (std::holds_alternative<LeastEdp>(goal)) return energy_j * time_s;
  if (std::holds_alternative<LeastEd2p>(goal)) return energy_j * time_s * time_s;
  if (std::holds_alternative<LeastEnergy>(goal)) return energy_j;
  if (const auto* cost = std::get_if<LeastCost>(&goal)) {
    const Prices& prices = cost->prices;
    return prices.pue * prices.per_kwh * energy_j / 3.6e6 +
           gpus * prices.per_gpu_hour * time_s / 3600.0;
  }
  const auto& budget = std::get<LeastTime>(goal);
  const double most_j =
      budget.max_energy_j ? *budget.max_energy_j : *budget.max_average_power_w * time_s;
  return energy_j <= most_j * (1.0 + rounding) ? time_s : std::numeric_limits<double>::infinity();
}

Goal arbitrary_goal(double default_s, double default_j) {
  const double share = *rc::gen::element(0.3, 0.7, 0.9, 0.99, 1.0, 1.1);
  switch (*rc::gen::inRange(0, 6)) {
    case 0: return LeastEdp{};
    case 1: return LeastEd2p{};
    case 2: return LeastEnergy{};
    case 3: return LeastTime{.max_energy_j = share * default_j, .max_average_power_w = {}};
    case 4:
      return LeastTime{.max_energy_j = {}, .max_average_power_w = share * default_j / default_s};
    default:
      return LeastCost{
          {.per_kwh = 0.2, .per_gpu_hour = *rc::gen::element(0.0, 0.01, 0.05, 2.0), .pue = 1.25}};
  }
}

// Plans for a goal against every plan there is, replayed one by one.
RC_GTEST_PROP(GoalSearch, PlanIsNoWorseThanOneClockAndNoBetterThanTheBound, ()) {
  const ExecutionGraph graph =
      arbitrary_graph({.most_gpus = 3, .most_launches = 7, .one_at_a_time = true});
  const double gpus = static_cast<double>(graph.gpus().size());
  const double host_w = *rc::gen::element(0.0, 150.0);
  const GraphModel board(graph, small_graph_spec(), small_graph_spec().default_clock);
  const ClockGrid grid = arbitrary_clocks(clocks_for(clocked_launches(board)));
  GraphExploration found;
  found.model = std::make_unique<const GraphModel>(board.with_host_power(host_w));
  found.planner = std::make_unique<GraphPlanner>(*found.model, grid);
  const GraphRun& defaults = found.planner->baseline();
  const std::array goals{arbitrary_goal(defaults.span_s, defaults.total_energy_j)};
  std::vector<Question> questions;
  for (const Granularity grain : all_grains)
    questions.push_back({grain, Aggregation::global, goals.front()});
  const auto outcomes = plans_of_goals(found, questions, {});
  RC_ASSERT(outcomes.size() == all_grains.size());
  double one_clock = std::numeric_limits<double>::infinity();
  for (const GraphPlanOutcome& outcome : outcomes) {
    const GraphPlanResult& result = outcome.result;
    double least = std::numeric_limits<double>::infinity();
    for (const AllPlans::One& one : AllPlans(board, grid, result.question.grain).plans)
      least = std::min(least, goal_value(goals.front(), gpus, one.span_s,
                                         one.energy_j + gpus * host_w * one.span_s));
    const bool exact = result.question.grain == Granularity::run;
    if (!result.found()) {
      RC_ASSERT(!exact || std::isinf(least));
      continue;
    }
    const GraphRun replayed = GraphSimulator(board, grid).run(result.plan);
    const double node_j = replayed.total_energy_j + gpus * host_w * replayed.span_s;
    RC_ASSERT(std::abs(result.run.total_energy_j - node_j) <= rounding * node_j);
    const double value = goal_value(goals.front(), gpus, replayed.span_s, node_j);
    RC_ASSERT(least <= value * (1.0 + rounding));
    RC_ASSERT(value * (1.0 - result.gap_frac) <= least * (1.0 + rounding));
    if (exact) {
      one_clock = value;
      RC_ASSERT(std::abs(value - least) <= rounding * least);
    }
    RC_ASSERT(value <= one_clock * (1.0 + rounding));
  }
}

}  // namespace
}  // namespace rubato
