// Plans in waves against all plans there are, and against what is found without them.

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/steady/wave_plans.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/small_pipeline.hpp"

namespace rubato {
namespace {

// Whatever the pipeline, they end in time and cost no less than the best plan.
RC_GTEST_PROP(WavePlans, EndInTimeAndAreNoBetterThanTheBest, ()) {
  const PipelineWork work = arbitrary_work(2, 3, 2);
  const ClockRounder rounder(work);
  const double deadline_s = rounder.least_time_s() + 0.5 * *rc::gen::inRange(0, 40);
  const auto plan = WavePlans(work, rounder).ending_by(deadline_s);
  if (!plan) return;  // one clock for all ends late
  double least_j = std::numeric_limits<double>::infinity();
  for_each_plan(work, [&](const PipelinePlan& other) {
    if (rounder.time_s(other) <= deadline_s) least_j = std::min(least_j, rounder.cost_j(other));
  });
  RC_ASSERT(simulate(work, *plan).time_s <= deadline_s * (1.0 + 1e-12));
  RC_ASSERT(rounder.cost_j(*plan) >= least_j - 1e-9);
}

// They fill what the clocks of a stage leave: without, these plans are 1.09 and 1.04 % above their
// bounds.
TEST(WavePlans, ComeNearTheBoundsOfLongPipelines) {
  const PipelineProfile profile =
      read_pipeline_profile(source_dir() / "docs/examples/gpt3-175b-a40.csv");
  const PipelineWork work =
      pipeline_work(make_schedule({.stages = 8, .microbatches = 96}), profile, a40_blocked_w);
  const PipelinePlanner planner(work), without(work, {.wave_gap_frac = 1.0});
  for (const double deadline_s : {41.44, 41.6}) {
    const PipelineResult plan = planner.plan({&deadline_s, 1}).front();
    EXPECT_LE(plan.run.time_s, deadline_s);
    EXPECT_LT(plan.gap_frac, 6.5e-3) << deadline_s;
    EXPECT_LT(plan.energy_j, 0.996 * without.plan({&deadline_s, 1}).front().energy_j) << deadline_s;
  }
}

// A pipeline that hardly fills has no steady state.
TEST(WavePlans, AreOfPipelinesThatFill) {
  const PipelineWork work =
      pipeline_work(make_schedule({.stages = 8, .microbatches = 8}), gpt3_a100(), a100_blocked_w);
  EXPECT_FALSE(WavePlans(work, ClockRounder(work)).ending_by(100.0));
}

}  // namespace
}  // namespace rubato
