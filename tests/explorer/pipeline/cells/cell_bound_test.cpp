// No plan of clocks costs less than the bound by cells says.

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/pipeline/cells/cell_bound.hpp"
#include "explorer/pipeline/planner.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/small_pipeline.hpp"

namespace rubato {
namespace {

// Least cost + price x time of all plans.
double least_of_all_plans(const PipelineWork& work, const ClockRounder& rounder, double price_w) {
  double least_j = std::numeric_limits<double>::infinity();
  for_each_plan(work, [&](const PipelinePlan& plan) {
    least_j = std::min(least_j, rounder.cost_j(plan) + price_w * rounder.time_s(plan));
  });
  return least_j;
}

FrontierPlan prices_at(const PipelineWork& work, double share) {
  const CrashProblem problem = crash_problem(work);
  const Frontier ends = sweep_frontier(problem);
  FrontierOptions sweep;
  sweep.times_s = {std::lerp(ends.least_time_s, ends.slowest_time_s, share)};
  return sweep_frontier(problem, sweep).plans.front();
}

RC_GTEST_PROP(CellBound, IsBelowEveryPlan, ()) {
  PipelineWork work = arbitrary_work(2, 3, 2);
  const double lag_s = 0.5 * *rc::gen::inRange(0, 3);
  for (Dependency& d : work.schedule.dependencies) {
    if (work.schedule.passes[index(d.from)].stage != work.schedule.passes[index(d.to)].stage)
      d.lag_s = lag_s;
  }
  const ClockRounder rounder(work);
  const FrontierPlan prices = prices_at(work, 0.1 * *rc::gen::inRange(0, 11));
  const PriceLine line = CellBound(work, rounder).line(prices).value();
  const double least_j = least_of_all_plans(work, rounder, line.price_w);
  const double digits_j = 1e-9 * (1.0 + std::abs(least_j));
  RC_ASSERT(line.price_w == prices.price_w);
  RC_ASSERT(line.least_j <= least_j + digits_j);
}

// What free durations say leaves 0.334 and 0.310 %.
TEST(CellBound, BringsSmallPipelinesOfA40Within0p3Percent) {
  const PipelineProfile profile =
      read_pipeline_profile(source_dir() / "docs/examples/gpt3-175b-a40.csv");
  const PipelineWork work = pipeline_work(make_schedule({.stages = 4, .microbatches = 4}), profile,
                                          a40_blocked_w, {0, 1, 6, 7});
  const PipelinePlanner planner(work), without(work, {.cell_gap_frac = 1.0, .last_dives = 0});
  for (const int i : {1, 11}) {
    const double deadline_s =
        std::lerp(planner.least_time_s(), planner.cheapest_time_s(), i / 59.0);
    const PipelineResult plan = planner.plan({&deadline_s, 1}).front();
    const PipelineResult before = without.plan({&deadline_s, 1}).front();
    EXPECT_LT(plan.gap_frac, 2.8e-3) << deadline_s;
    EXPECT_GT(before.gap_frac, 3e-3) << deadline_s;
    EXPECT_GT(plan.lower_bound_j, before.lower_bound_j) << deadline_s;
    EXPECT_LE(plan.energy_j, before.energy_j) << deadline_s;
  }
}

// Of some clocks a pipeline may mix what it likes: then there is nothing to raise.
TEST(CellBound, OfOneStageIsThatOfItsPrices) {
  const PipelineWork work = pipeline_work(make_schedule({.stages = 1, .microbatches = 4}),
                                          gpt3_a100(), a100_blocked_w, {0});
  const ClockRounder rounder(work);
  const FrontierPlan prices = prices_at(work, 0.5);
  const CellBound cells(work, rounder);
  EXPECT_TRUE(cells.cells().empty());
  const double bound_j = cells.line(prices).value().least_j - prices.price_w * prices.time_s;
  EXPECT_NEAR(bound_j, prices.lower_bound_j, 1e-9 * std::abs(prices.lower_bound_j));
}

TEST(CellBound, EndsEarlyWhereMoreIsKnown) {
  const PipelineWork work =
      pipeline_work(make_schedule({.stages = 8, .microbatches = 12}), gpt3_a100(), a100_blocked_w);
  const ClockRounder rounder(work);
  const FrontierPlan prices = prices_at(work, 0.1);
  const CellBound cells(work, rounder);
  const double bound_j = cells.line(prices).value().least_j - prices.price_w * prices.time_s;
  EXPECT_GT(bound_j, prices.lower_bound_j);
  EXPECT_TRUE(cells.line(prices, prices.lower_bound_j).has_value());
  EXPECT_FALSE(cells.line(prices, bound_j + 0.01 * std::abs(bound_j)).has_value());
}

}  // namespace
}  // namespace rubato
