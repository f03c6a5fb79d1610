#include "explorer/pipeline/exploration.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/plan/answer.hpp"

namespace rubato {
namespace {

Exploration explored(const char* gpu, std::uint32_t stages, std::uint32_t microbatches,
                     const Goal& goal, std::string grid = "") {
  PipelineSplit split{
      .shape = gpt_preset("gpt3-xl"), .stages = stages, .microbatches = microbatches};
  split.shape.batch = microbatches;
  ExplorationInput input{.trace = microbatch_trace(split),
                         .spec = load_gpu_spec(gpu),
                         .grid = std::move(grid),
                         .power_limit_w = {},
                         .switching = {},
                         .questions = {{Granularity::pass, Aggregation::global, goal}}};
  return explore_pipeline(input, split);
}

// The gap of a plan for least cost is of its cost, not of its energy.
TEST(PipelineExploration, GapOfLeastCost) {
  const Prices prices{.per_kwh = 0.12, .per_gpu_hour = 0.05};
  const PlanResult plan = explored("rtx-3080-ti", 4, 8, LeastCost{prices}, "paper").plans.front();
  ASSERT_EQ(plan.question.granularity, Granularity::pass);
  EXPECT_GT(plan.lower_bound, 0.0);
  EXPECT_LE(plan.lower_bound, plan.objective);
  EXPECT_NEAR(plan.gap_frac, 1.0 - plan.lower_bound / plan.objective, 1e-12);
}

// No plan for a slack comes to less, and none that a bound forbids is found.
TEST(PipelineExploration, GoalsAreNoWorseThanPlansForSlacks) {
  const auto explore = [](const Goal& goal) { return explored("a100-sxm4-80gb", 3, 6, goal); };
  const Totals defaults = explore(LeastWaste{}).baseline.total;
  const std::vector<Goal> goals{
      LeastEdp{}, LeastEd2p{}, LeastEnergy{},
      LeastTime{.max_energy_j = 0.9 * defaults.energy_j, .max_average_power_w = {}},
      LeastCost{{.per_kwh = 0.12, .per_gpu_hour = 0.05}}};
  std::vector<PlanResult> of_slacks;
  for (const double slack_frac : {0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4}) {
    const PlanResult plan = explore(LeastWaste{slack_frac}).plans.front();
    if (plan.found()) of_slacks.push_back(plan);
  }
  ASSERT_GE(of_slacks.size(), 4U);
  for (const Goal& goal : goals) {
    const PlanResult plan = explore(goal).plans.front();
    ASSERT_TRUE(plan.found()) << name_of(goal);
    const auto judged = [&](const Totals& total) {
      return contender(goal, Cost{total.time_s, total.energy_j},
                       {defaults.time_s, defaults.energy_j});
    };
    EXPECT_TRUE(judged(plan.sim.total).holds) << name_of(goal);
    EXPECT_GT(plan.lower_bound, 0.0);
    EXPECT_LE(plan.lower_bound, plan.objective * (1.0 + 1e-12)) << name_of(goal);
    EXPECT_LE(plan.gap_frac, 0.03) << name_of(goal);
    for (const PlanResult& other : of_slacks) {
      const Totals& total = other.sim.total;
      if (!judged(total).holds || other.verdict.applicable != plan.verdict.applicable) continue;
      EXPECT_LE(judged(plan.sim.total).objective_frac, judged(total).objective_frac * (1.0 + 1e-3))
          << name_of(goal);
    }
  }
}

TEST(PipelineExploration, PlansSayWhatIsDoubtful) {
  const auto has = [](const PlanResult& plan, MarkKind kind) {
    return std::ranges::find(plan.marks, kind, &Mark::kind) != plan.marks.end();
  };
  // Fitted from 705 to 1710 MHz; the default is 1770.
  EXPECT_TRUE(
      has(explored("rtx-8000", 2, 4, LeastWaste{}).plans.front(), MarkKind::clocks_not_fitted));
  const auto fitted = explored("a100-sxm4-80gb", 2, 4, LeastWaste{}, "mem=1593 core=705:1410:15");
  EXPECT_FALSE(has(fitted.plans.front(), MarkKind::clocks_not_fitted));
}

}  // namespace
}  // namespace rubato
