// One clock for all with the odds asked for, against every clock there is.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "explorer/graph/exploration.hpp"
#include "tests/made_exploration.hpp"

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
    input.questions.push_back({Granularity::iteration, Aggregation::global, LeastWaste{slack}});
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

}  // namespace
}  // namespace rubato
