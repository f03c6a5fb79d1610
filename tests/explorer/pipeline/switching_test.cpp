// Plans whose changes of clock cost something, against all plans there are.

#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/run_search.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/paths.hpp"
#include "tests/small_pipeline.hpp"

namespace rubato {
namespace {

SwitchModel quarter_switching() {
  const auto amount = [] { return 0.25 * *rc::gen::inRange(0, 9); };
  SwitchModel model{.core = {amount(), amount(), amount()}, .mem = {}, .dwell_s = amount()};
  if (*rc::gen::arbitrary<bool>()) model.mem = SwitchCost{amount(), amount(), amount()};
  return model;
}

// Some options at another memory clock.
void vary_memory(PipelineWork& work) {
  for (PassType& type : work.types) {
    for (std::size_t o = 0; o < type.options.size(); ++o) {
      type.options[o].mem_mhz = o % 3 == 2 ? 405 : 5000;
    }
  }
}

PipelinePlan arbitrary_plan(const PipelineWork& work) {
  PipelinePlan plan;
  for (const PassTypeId type : work.type_of_pass) {
    const auto options = static_cast<int>(work.types[index(type)].options.size());
    plan.option_of_pass.push_back(
        OptionId{static_cast<std::uint32_t>(*rc::gen::inRange(0, options))});
  }
  return plan;
}

RC_GTEST_PROP(StageClocks, TakesAsLongAsTheSimulator, ()) {
  PipelineWork work = arbitrary_work(3, 4, 4);
  vary_memory(work);
  const SwitchModel switching = quarter_switching();
  const PipelinePlan plan = arbitrary_plan(work);
  const StageClocks clocks(work, switching);
  std::vector<double> end_s(work.schedule.passes.size());
  const StagePlan settings = clocks.stage_plan(plan);
  const PipelineRun run = simulate(work, plan, {.switching = switching});
  RC_ASSERT(clocks.plan(settings) == plan);
  RC_ASSERT(clocks.time_s(settings, end_s) == run.time_s);
  const double waiting_w = work.blocked_power_w * work.schedule.shape.stages;
  RC_ASSERT(std::abs(clocks.cost_j(settings) + waiting_w * run.time_s - run.energy_j) <=
            1e-9 * run.energy_j);
}

// Without a cost, the priced plan's bound is the frontier's own.
RC_GTEST_PROP(RunSearch, PricesOfFreeChangesGiveTheFrontiersBound, ()) {
  const PipelineWork work = arbitrary_work(3, 3, 4);
  const CrashProblem problem = crash_problem(work);
  const Frontier frontier = sweep_frontier(problem);
  FrontierOptions options;
  const double share = 0.1 * *rc::gen::inRange(0, 11);
  options.times_s = {frontier.least_time_s +
                     share * (frontier.slowest_time_s - frontier.least_time_s)};
  const FrontierPlan prices = sweep_frontier(problem, options).plans.front();
  const PricedPlan priced = price_runs(StageClocks(work, {}), prices);
  RC_ASSERT(std::abs(priced.least_j - priced.price_w * prices.time_s - prices.lower_bound_j) <=
            1e-6 * (1.0 + std::abs(prices.lower_bound_j)));
}

// Least energy of any plan that keeps the deadline.
double best_switching_j(const PipelineWork& work, const SwitchModel& switching, double deadline_s) {
  double best_j = std::numeric_limits<double>::infinity();
  for_each_plan(work, [&](const PipelinePlan& plan) {
    const PipelineRun run = simulate(work, plan, {.switching = switching});
    if (run.time_s <= deadline_s) best_j = std::min(best_j, run.energy_j);
  });
  return best_j;
}

RC_GTEST_PROP(RunSearch, PlansLieBetweenBoundAndTheHighestClocks, ()) {
  PipelineWork work = arbitrary_work(2, 2, 2);
  vary_memory(work);
  const SwitchModel switching = quarter_switching();
  const PipelinePlanner planner(work, {.switching = switching});
  const double deadline_s = planner.baseline().time_s + 0.5 * *rc::gen::inRange(0, 30);
  const PipelineResult result = planner.plan({&deadline_s, 1}).front();
  const double best_j = best_switching_j(work, switching, deadline_s);
  RC_ASSERT(result.status == SolveStatus::feasible);  // the highest clocks never change
  RC_ASSERT(result.run.time_s <= deadline_s);
  RC_ASSERT(result.energy_j <= planner.baseline().energy_j * (1.0 + 1e-12));
  RC_ASSERT(result.lower_bound_j <= best_j * (1.0 + 1e-9));
  RC_ASSERT(result.energy_j >= best_j * (1.0 - 1e-9));
  RC_ASSERT(result.energy_j <= best_j * 1.3);  // options this coarse leave no small steps
}

// What is left of the saving on a measured profile falls with the latency, and is never nothing
// where a plan by hand saves: 8 stages x 12 microbatches, 15.9 % where changes are free.
TEST(RunSearch, RepairsPlansInsteadOfGivingThemUp) {
  const PipelineProfile profile =
      read_pipeline_profile(source_dir() / "docs/examples/gpt3-175b-a100.csv");
  const PipelineWork work =
      pipeline_work(make_schedule({.stages = 8, .microbatches = 12}), profile, 83.64);
  const auto saving = [&](double stall_s, double slack) {
    const PipelinePlanner planner(work, {.switching = {.core = {.stall_s = stall_s}, .mem = {}}});
    const double deadline_s = planner.baseline().time_s * (1.0 + slack);
    const PipelineResult result = planner.plan({&deadline_s, 1}).front();
    EXPECT_LE(result.run.time_s, deadline_s);
    EXPECT_LE(result.lower_bound_j, result.energy_j);
    return saving_pct(result.energy_j, planner.baseline().energy_j);
  };
  EXPECT_GT(saving(10e-6, 0.0), 15.9);
  EXPECT_GT(saving(1e-3, 0.0), 12.6);
  EXPECT_GT(saving(10e-3, 0.05), 12.4);
}

}  // namespace
}  // namespace rubato
