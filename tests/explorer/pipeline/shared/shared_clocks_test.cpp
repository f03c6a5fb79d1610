// Plans in which passes share clocks against all such plans there are.

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "explorer/pipeline/shared/stage_planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/small_pipeline.hpp"

namespace rubato {
namespace {

constexpr std::array all_grains{Granularity::run, Granularity::gpu, Granularity::stage,
                                Granularity::pass};

// Whether passes that may choose their clock have one for all (run) or one for each stage.
bool shares_clocks(const PipelineWork& work, const PipelinePlan& plan, Granularity granularity) {
  std::map<std::uint32_t, double> clock_of;
  for (std::size_t p = 0; p < plan.option_of_pass.size(); ++p) {
    const PassType& type = work.type_of(id_at<PassId>(p));
    if (type.options.size() == 1) continue;
    const double clock = type.options[index(plan.option_of_pass[p])].core_mhz;
    const std::uint32_t who = granularity == Granularity::run ? 0 : work.schedule.passes[p].stage;
    if (clock_of.emplace(who, clock).first->second != clock) return false;
  }
  return true;
}

// The law: of all plans that share clocks so and end in time, none has a lower value.
RC_GTEST_PROP(SharedClocks, AreTheBestThatThereAre, ()) {
  const PipelineWork work = arbitrary_work(2, 2, 4);
  const PipelinePlanner planner(work);
  const StagePlanner plans(planner, {}, all_grains);
  const double deadline_s = planner.least_time_s() * (1.0 + 0.01 * *rc::gen::inRange(0, 100));
  const double budget_j = planner.baseline().energy_j * 0.01 * *rc::gen::inRange(60, 110);
  for (const Granularity granularity : {Granularity::run, Granularity::stage}) {
    double least_j = std::numeric_limits<double>::infinity(), least_js = least_j, least_s = least_j;
    for_each_plan(work, [&](const PipelinePlan& plan) {
      if (!shares_clocks(work, plan, granularity)) return;
      const PipelineRun run = simulate(work, plan);
      if (run.time_s <= deadline_s) least_j = std::min(least_j, run.energy_j);
      least_js = std::min(least_js, run.energy_j * run.time_s);
      if (run.energy_j <= budget_j) least_s = std::min(least_s, run.time_s);
    });
    const PipelineResult found = plans.plan(granularity, {&deadline_s, 1}).front();
    RC_ASSERT(found.found() == std::isfinite(least_j));
    RC_ASSERT(found.granularity == granularity);
    if (!found.found()) continue;
    RC_ASSERT(shares_clocks(work, found.plan, granularity));
    RC_ASSERT(found.status == SolveStatus::optimal);
    RC_ASSERT(std::abs(found.energy_j - least_j) <= 1e-9 * least_j);
    RC_ASSERT(found.run.time_s <= deadline_s * (1.0 + 1e-9));
    if (granularity != Granularity::run) continue;
    const auto can_be_set = [](const PipelineResult&) { return PlanVerdict{}; };
    const PipelineResult edp = plans.plans_of_goal(LeastEdp{}, can_be_set).front();
    RC_ASSERT(std::abs(edp.energy_j * edp.run.time_s - least_js) <= 1e-9 * least_js);
    const PipelineResult quick = plans.plans_of_goal(LeastTime{budget_j, {}}, can_be_set).front();
    RC_ASSERT(quick.found() == std::isfinite(least_s));
    if (quick.found()) RC_ASSERT(std::abs(quick.run.time_s - least_s) <= 1e-9 * least_s);
  }
}

// Whoever asks for plans per kernel too gets the same plans per pass, per stage and of one clock.
TEST(StagePlanner, PlansDoNotDependOnWhatElseIsAsked) {
  StageModelInput input{.shape = gpt_preset("gpt3-xl"),
                        .spec = load_gpu_spec("a100-sxm4-80gb"),
                        .grid = "coarse",
                        .stages = 2};
  input.shape.model.layers = 4;
  input.blocked_power_w = model_idle_power_w(input.spec, input.grid);
  std::map<Granularity, double> energy_j;
  for (const PassClocks clocks : {PassClocks::per_pass, PassClocks::per_kernel}) {
    input.clocks = clocks;
    const PipelineWork work = pipeline_work(make_schedule({.stages = 2, .microbatches = 3}),
                                            model_profile(input).profile, input.blocked_power_w);
    const PipelinePlanner planner(work);
    std::vector<Granularity> grains(all_grains.begin(), all_grains.end());
    if (clocks == PassClocks::per_kernel) grains.push_back(Granularity::kernel);
    const StagePlanner plans(planner, {}, grains);
    const double deadline_s = planner.baseline().time_s * 1.03;
    double coarser_j = planner.baseline().energy_j;
    for (const Granularity granularity : grains) {
      const PipelineResult plan = plans.plan(granularity, {&deadline_s, 1}).front();
      ASSERT_TRUE(plan.found());
      EXPECT_EQ(plan.granularity, granularity);
      EXPECT_DOUBLE_EQ(simulate(work, plan.plan).energy_j, plan.run.energy_j);
      EXPECT_LE(plan.energy_j, coarser_j * (1.0 + 1e-9)) << name_of(granularity);
      EXPECT_LE(plan.lower_bound_j, plan.energy_j);
      coarser_j = plan.energy_j;
      const auto [known, is_new] = energy_j.emplace(granularity, plan.energy_j);
      EXPECT_NEAR(known->second, plan.energy_j, 1e-9 * plan.energy_j) << name_of(granularity);
    }
  }
}

}  // namespace
}  // namespace rubato
