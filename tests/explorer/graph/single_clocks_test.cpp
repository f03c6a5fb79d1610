// One clock for all with the odds asked for, against every clock there is.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "explorer/graph/exploration.hpp"
#include "tests/explorer/graph/all_plans.hpp"
#include "tests/made_exploration.hpp"
#include "tests/paths.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// The least energy of single clocks that keep a slack with the odds, as a change; 0: none saves.
double least_frac(const GraphExploration& found, const GraphPlanIntervals& intervals,
                  double slack_frac, double odds_frac) {
  const ClockGrid& grid = found.planner->grid();
  const GraphRun& base = found.planner->baseline();
  GraphSimulator simulator(*found.model, grid);
  double least = 0.0;
  for (std::size_t c = 0; c < grid.size(); ++c) {
    const GraphPlan plan = uniform_plan(found.run->graph, id_at<ClockId>(c));
    const GraphRun run = simulator.run(plan);
    if (run.span_s > (1.0 + slack_frac) * base.span_s) continue;
    if (intervals.of(plan, run).times.odds_within(percent * slack_frac) < odds_frac) continue;
    least = std::min(least, run.total_energy_j / base.total_energy_j - 1.0);
  }
  return least;
}

TEST(SingleClocks, AreTheBestOfAllThatHaveTheOdds) {
  constexpr double alike = 1e-9;
  GraphExplorationInput input = made_exploration_input({.layers = 2}, {});
  input.grid = "mem=1593 core=705:1410:15";
  const std::vector<double> slacks{0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2};
  for (const double slack : slacks)
    input.questions.push_back({Granularity::run, Aggregation::global, LeastWaste{slack}});
  int saving = 0;
  for (const double odds : {0.5, 0.9, 0.97}) {
    input.odds_frac = odds;
    const GraphExploration found = explore_captured(input);
    const GraphPlanIntervals intervals(*found.model, *found.model, found.planner->grid(),
                                       found.planner->baseline());
    for (std::size_t i = 0; i < slacks.size(); ++i) {
      const double least = least_frac(found, intervals, slacks[i], odds);
      EXPECT_NEAR(found.plans[i].change.energy_frac, least, alike) << slacks[i] << ", " << odds;
      EXPECT_GE(found.plans[i].odds_in_time.value(), odds);
      saving += least < 0.0;
    }
  }
  EXPECT_GT(saving, 8);
}

// One clock for all may take the whole step in time and one of its passes beyond its own limit.
TEST(SingleClocks, DoNotStandForPlansOfLocalAggregation) {
  constexpr double rounding = 1e-9;
  GraphExplorationInput input = made_exploration_input({.layers = 2}, {});
  input.captures = {
      import_capture(source_dir() / "docs/examples/run.pt.trace.json.gz")};  // waits leave it time
  input.grid = "mem=1593 core=1200:1410:15";
  for (const Granularity granularity : {Granularity::pass, Granularity::kernel}) {
    for (const double slack : {0.01, 0.02, 0.05})
      input.questions.push_back({granularity, Aggregation::local, LeastWaste{slack}});
  }
  for (const double odds : {0.5, 0.9}) {
    input.odds_frac = odds;
    const GraphExploration found = explore_captured(input);
    const GraphModel& model = *found.model;
    const ExecutionGraph& graph = model.graph();
    const ClockGrid& grid = found.planner->grid();
    for (const GraphPlanOutcome& outcome : found.plans) {
      const GraphPlanResult& local = outcome.result;
      ASSERT_TRUE(local.found());
      std::uint32_t units = 0;
      const auto unit_of = units_by_definition(model, local.question.grain, units);
      std::vector<double> taken_s(units, 0.0), default_s(units, 0.0);
      for (std::size_t i = 0; i < graph.size(); ++i) {
        if (model.work()[i] <= 0.0) continue;
        const Activity& launch = graph.activities()[i];
        const auto alone_s = [&](ClockId clock) {
          return model.work()[i] *
                 model
                     .evaluate(launch.kernel, grid[clock], model.throttle_of(*graph.gpu_of(launch)))
                     .time_s;
        };
        taken_s[unit_of[i]] += alone_s(local.plan.clock_of_activity[i]);
        default_s[unit_of[i]] += alone_s(grid.default_clock());
      }
      const double limit = (1.0 + local.question.slack_frac) * (1.0 + rounding);
      for (std::uint32_t unit = 0; unit < units; ++unit)
        EXPECT_LE(taken_s[unit], limit * default_s[unit]) << limit << ", " << odds;
    }
  }
}

}  // namespace
}  // namespace rubato
