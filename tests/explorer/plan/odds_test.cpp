// Plans with odds, of traces and captured runs: what is named keeps its deadline as often as was
// asked for, and more odds never save more.

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/exploration.hpp"
#include "explorer/graph/exploration.hpp"
#include "tests/made_exploration.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

constexpr double rounding = 1e-9;

// @param before  energies of the same plans at lower odds
void expect_less_saved(const std::vector<double>& energies_j, std::vector<double>& before) {
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_GE(energies_j[i], before[i] * (1.0 - rounding)) << "plan " << i;
  before = energies_j;
}

TEST(Odds, OfTracesAreKeptAndCostSavings) {
  ExplorationInput input{.trace = load_trace("gpt3-xl"),
                         .spec = load_gpu_spec("rtx-3080-ti"),
                         .grid = "paper",
                         .power_limit_w = {},
                         .switching = {},
                         .questions = {}};
  for (const double slack : {0.0, 0.02, 0.05, 0.1}) {
    for (const Granularity granularity : {Granularity::run, Granularity::pass})
      input.questions.push_back({granularity, Aggregation::global, LeastWaste{slack, 0.0}});
  }
  std::vector<double> before;
  int saving = 0;
  for (const double odds : {0.0, 0.9, 0.99}) {
    input.odds_frac = odds;
    std::vector<double> energies_j;
    for (const PlanResult& plan : explore(input).plans) {
      ASSERT_TRUE(plan.found());
      EXPECT_GE(plan.odds_in_time.value(), odds);
      energies_j.push_back(plan.sim.total.energy_j);
      saving += odds > 0.0 && plan.bolder.has_value();
    }
    expect_less_saved(energies_j, before);
  }
  EXPECT_GT(saving, 0);  // some plans needed a margin
}

TEST(Odds, OfCapturedRunsAreKeptAndCostSavings) {
  GraphExplorationInput input = made_exploration_input({.layers = 2}, {});
  for (const double slack : {0.0, 0.02, 0.05, 0.1}) {
    for (const Granularity grain : {Granularity::run, Granularity::pass})
      input.questions.push_back({grain, Aggregation::global, LeastWaste{slack}});
  }
  std::vector<double> before;
  for (const double odds : {0.0, 0.9, 0.99}) {
    input.odds_frac = odds;
    std::vector<double> energies_j;
    const GraphExploration found = explore_captured(input);
    for (const GraphPlanOutcome& plan : found.plans) {
      ASSERT_TRUE(plan.result.found());
      EXPECT_GE(plan.odds_in_time.value(), odds);
      EXPECT_LE(plan.change.time_frac, plan.result.question.slack_frac + rounding);
      energies_j.push_back(plan.result.run.total_energy_j);
    }
    expect_less_saved(energies_j, before);
  }
}

// What is named beside a single clock with the odds is the one that even odds would find.
TEST(Odds, EvenOddsNameTheSingleClockThatTheyWouldFind) {
  GraphExplorationInput input = made_exploration_input({.layers = 2}, {});
  for (int slack_pct = 1; slack_pct <= 20; ++slack_pct)
    input.questions.push_back(
        {Granularity::run, Aggregation::global, LeastWaste{0.01 * slack_pct}});
  input.odds_frac = even_odds_frac;
  const GraphExploration even = explore_captured(input);
  input.odds_frac = 0.99;
  const GraphExploration asked = explore_captured(input);
  int named = 0;
  for (std::size_t i = 0; i < asked.plans.size(); ++i) {
    const double even_frac = even.plans[i].change_as_played().energy_frac;
    if (even_frac > asked.plans[i].change_as_played().energy_frac - rounding) continue;
    ++named;
    const std::optional<BolderPlan>& bolder = asked.plans[i].bolder;
    ASSERT_TRUE(bolder) << i;
    EXPECT_NEAR(bolder->energy_frac, even_frac, rounding) << i;
    EXPECT_GE(bolder->odds_in_time, even_odds_frac) << i;
    EXPECT_LT(bolder->odds_in_time, input.odds_frac) << i;
  }
  EXPECT_GT(named, 0);
}

}  // namespace
}  // namespace rubato
