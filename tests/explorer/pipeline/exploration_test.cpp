#include "explorer/pipeline/exploration.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace rubato {
namespace {

Exploration explored(const char* gpu, std::uint32_t stages, std::uint32_t microbatches,
                     const Goal& goal) {
  PipelineSplit split{
      .shape = gpt_preset("gpt3-xl"), .stages = stages, .microbatches = microbatches};
  split.shape.batch = microbatches;
  ExplorationInput input{.trace = microbatch_trace(split),
                         .spec = load_gpu_spec(gpu),
                         .grid = "",
                         .power_limit_w = {},
                         .switching = {},
                         .questions = {{Granularity::pass, Aggregation::global, goal}}};
  return explore_pipeline(input, split);
}

// The gap of a plan for least cost is of its cost, not of its energy.
TEST(PipelineExploration, GapOfLeastCost) {
  const Prices prices{.per_kwh = 0.12, .per_gpu_hour = 0.05};
  const PlanResult plan = explored("rtx-3080-ti", 4, 8, LeastCost{prices}).plans.front();
  ASSERT_EQ(plan.question.granularity, Granularity::pass);
  EXPECT_GT(plan.lower_bound, 0.0);
  EXPECT_LE(plan.lower_bound, plan.objective);
  EXPECT_NEAR(plan.gap_frac, 1.0 - plan.lower_bound / plan.objective, 1e-12);
}

TEST(PipelineExploration, PlansSayWhatIsDoubtful) {
  const auto has = [](const PlanResult& plan, MarkKind kind) {
    return std::ranges::find(plan.marks, kind, &Mark::kind) != plan.marks.end();
  };
  // Fitted from 705 to 1710 MHz; the default is 1770.
  EXPECT_TRUE(
      has(explored("rtx-8000", 2, 4, LeastWaste{}).plans.front(), MarkKind::clocks_not_fitted));
  EXPECT_FALSE(has(explored("a100-sxm4-80gb", 2, 4, LeastWaste{}).plans.front(),
                   MarkKind::clocks_not_fitted));
}

}  // namespace
}  // namespace rubato
