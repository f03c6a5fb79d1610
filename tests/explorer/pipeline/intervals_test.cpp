// Intervals of modelled pipelines against those of single GPUs, and against what is known exactly.

#include "explorer/pipeline/intervals.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "explorer/pipeline/planner.hpp"
#include "explorer/results/answers.hpp"
#include "models/validation/uncertainty.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {
namespace {

// The paper's step, whose kernels were measured, over some stages.
struct ModelledPipeline {
  StageModelInput input;
  ModelProfile model;
  PipelineWork work;
  SwitchModel switching;

  explicit ModelledPipeline(std::uint32_t stages, std::uint32_t microbatches,
                            const ModelErrors& errors, bool drawn = false,
                            ScheduleKind kind = ScheduleKind::one_f_one_b) {
    input.shape = gpt_preset("gpt3-xl");
    input.shape.batch = 40;
    input.spec = load_gpu_spec("rtx-3080-ti");
    if (!drawn) input.spec.ensemble.clear();
    write_errors(errors, input.spec);
    input.stages = stages;
    input.blocked_power_w = 60.0;
    model = model_profile(input);
    if (kind == ScheduleKind::early_recompute) add_recompute(model.profile);
    work =
        pipeline_work(make_schedule({.kind = kind, .stages = stages, .microbatches = microbatches}),
                      model.profile, input.blocked_power_w);
  }

  // All passes at one clock of the grid.
  [[nodiscard]] PipelinePlan uniform(const std::string& label) const {
    PipelinePlan plan;
    for (const PassTypeId type : work.type_of_pass) {
      const auto& clocks = model.clocks[index(type)].clock_of_kernel;
      for (std::size_t o = 0; o < clocks.size(); ++o) {
        if (clocks[o].front() == label) plan.option_of_pass.push_back(id_at<OptionId>(o));
      }
    }
    return plan;
  }

  [[nodiscard]] SavingInterval of(const PipelinePlan& plan,
                                  const PipelineIntervalQuestion& question = {}) const {
    return PipelineIntervals(input, model.clocks, work, switching).of(plan, question);
  }
};

double width(const Interval& interval) { return interval.high_pct - interval.low_pct; }

constexpr const char* slow = "5001/1470";
const ModelErrors some_errors{.shared = {0.01, 0.02}, .own = {0.01, 0.02}};

// One stage and one microbatch are one GPU that runs the step: the same draws give the same ends.
TEST(PipelineIntervals, OfOneStageAreThoseOfTheStep) {
  const ModelledPipeline one(1, 1, some_errors, true);
  const Trace step = generate_training_step(one.input.shape).trace;
  const GpuModel model(one.input.spec, step);
  const ClockGrid grid = make_clock_grid(one.input.spec, one.input.grid);
  const SavingInterval expected =
      saving_interval(step, model, draw_models(model, step, drawn_models), grid,
                      uniform_plan(step, *grid.find(slow)), model_errors(one.input.spec), {});
  const SavingInterval found = one.of(one.uniform(slow));
  EXPECT_GT(width(expected.energy), 1.0);
  for (const auto& [a, b] :
       {std::pair{found.time, expected.time}, {found.energy, expected.energy}}) {
    EXPECT_NEAR(a.low_pct, b.low_pct, 1e-6);
    EXPECT_NEAR(a.median_pct, b.median_pct, 1e-6);
    EXPECT_NEAR(a.high_pct, b.high_pct, 1e-6);
  }
}

// As of traces and captured runs: an interval that holds no saving decides nothing.
TEST(PipelineIntervals, APlanThatMaySaveNothingIsNotKnownToSave) {
  const ModelledPipeline two(2, 2, some_errors);
  PipelinePlanner planner(two.work);
  const double deadline_s = 1.1 * planner.baseline().time_s;
  PipelineResult plan = planner.plan({&deadline_s, 1}).front();
  ASSERT_TRUE(plan.found());
  EXPECT_EQ(contender_of(planner, plan).saving, Saving::known);  // measured passes have no interval
  for (const auto& [low_pct, high_pct, expected] : {std::tuple{-90.0, -3.0, Saving::known},
                                                    {-90.0, 0.5, Saving::likely},
                                                    {-90.0, 90.0, Saving::unlikely},
                                                    {0.0, 0.0, Saving::known}}) {
    plan.interval = SavingInterval{.time = {}, .energy = {low_pct, low_pct, high_pct}};
    EXPECT_EQ(contender_of(planner, plan).saving, expected) << high_pct;
  }
}

// A power limit has the errors of the clocks it leaves.
TEST(PipelineIntervals, OfPowerLimitsAreThoseOfTheStepUnderThem) {
  ModelledPipeline one(1, 1, some_errors, true);
  one.input.grid = "paper limit=250,350";
  one.model = model_profile(one.input);
  one.work = pipeline_work(
      make_schedule({.kind = ScheduleKind::one_f_one_b, .stages = 1, .microbatches = 1}),
      one.model.profile, one.input.blocked_power_w);
  const PipelinePlan limited = one.uniform("auto/auto, 250 W");
  const SavingInterval found = one.of(limited), none = one.of(one.uniform("auto/auto"));
  EXPECT_NEAR(none.energy.low_pct, 0.0, 1e-9);
  const PipelineRun base = simulate(one.work, highest_clocks(one.work)),
                    run = simulate(one.work, limited);
  const double change = change_pct(run.energy_j, base.energy_j);
  EXPECT_LT(change, -1.0);
  EXPECT_LE(found.energy.low_pct, change);
  EXPECT_GE(found.energy.high_pct, change);
  EXPECT_GT(width(found.energy), 1.0);
  EXPECT_LT(found.energy.high_pct, change + 15.0);
}

// However large errors and scales are, a lower core clock takes between no time and the ratio of
// the clocks more, with all stages at it; a lower power limit takes no less time.
TEST(PipelineIntervals, TimesStayWithinWhatClocksCanChange) {
  ModelledPipeline four(4, 6, {.shared = {0.3, 0.1}, .own = {0.3, 0.1}}, true);
  write_scales({{}, {3.0, 1.0}}, 0, four.input.spec);
  four.input.grid = "paper limit=250,350";
  four.model = model_profile(four.input);
  four.work = pipeline_work(
      make_schedule({.kind = ScheduleKind::one_f_one_b, .stages = 4, .microbatches = 6}),
      four.model.profile, four.input.blocked_power_w);
  const Interval lower = four.of(four.uniform("auto/1470")).time;
  const double usual_mhz = effective_core_mhz(four.input.spec, four.input.spec.default_clock);
  EXPECT_GE(lower.low_pct, -1e-9);
  EXPECT_LE(lower.high_pct, 100.0 * (usual_mhz / 1470.0 - 1.0) + 1e-9);
  EXPECT_GT(width(lower), 10.0);
  EXPECT_GE(four.of(four.uniform("auto/auto, 250 W")).time.low_pct, -1e-9);
}

TEST(PipelineIntervals, AreTheChangeWhereNothingIsUncertain) {
  ModelledPipeline four(4, 6, {});
  four.switching.core = {.stall_s = 0.01, .energy_j = 1.0};
  const PipelinePlanner planner(four.work, {.switching = four.switching});
  const double deadline_s = 1.05 * planner.baseline().time_s;
  const PipelineResult best = planner.plan({&deadline_s, 1}).front();
  const SavingInterval interval = four.of(best.plan);
  const double time_pct = change_pct(best.run.time_s, planner.baseline().time_s);
  const double energy_pct = change_pct(best.run.energy_j, planner.baseline().energy_j);
  ASSERT_LT(energy_pct, -5.0);
  for (const auto& [of, expected] :
       {std::pair{interval.time, time_pct}, {interval.energy, energy_pct}}) {
    EXPECT_NEAR(of.low_pct, expected, 1e-9);
    EXPECT_NEAR(of.high_pct, expected, 1e-9);
  }
}

TEST(PipelineIntervals, WhoIsDoneBeforeTheSlowestPipelineWaits) {
  const ModelledPipeline four(4, 6, {});
  const PipelinePlan plan = four.uniform(slow);
  const PipelineRun base = simulate(four.work, highest_clocks(four.work));
  const PipelineRun run = simulate(four.work, plan);
  const double end_s = 3.0 * base.time_s, waiting_w = 4.0 * four.work.blocked_power_w;
  ASSERT_GT(end_s, run.time_s);
  const double expected = change_pct(run.energy_j + waiting_w * (end_s - run.time_s),
                                     base.energy_j + waiting_w * (end_s - base.time_s));
  const SavingInterval interval =
      four.of(plan, {.against = nullptr, .until_vs_default = 3.0, .switching = nullptr});
  EXPECT_NEAR(interval.energy.low_pct, expected, 1e-9);
  EXPECT_NEAR(interval.energy.high_pct, expected, 1e-9);
  EXPECT_NEAR(interval.time.high_pct, 0.0, 1e-9);
}

TEST(PipelineIntervals, AgainstAnotherPlanErrorsOfBothCount) {
  const ModelledPipeline four(4, 6, some_errors, true);
  const PipelinePlan plan = four.uniform(slow), other = four.uniform("5001/1260");
  const SavingInterval same =
      four.of(plan, {.against = &plan, .until_vs_default = {}, .switching = nullptr});
  EXPECT_NEAR(width(same.energy), 0.0, 1e-9);
  const SavingInterval against =
      four.of(other, {.against = &plan, .until_vs_default = {}, .switching = nullptr});
  const double expected =
      change_pct(simulate(four.work, other).energy_j, simulate(four.work, plan).energy_j);
  EXPECT_LE(against.energy.low_pct, expected);
  EXPECT_GE(against.energy.high_pct, expected);
  // What both are off by cancels.
  EXPECT_LT(width(against.energy), width(four.of(other).energy));
  EXPECT_GT(width(against.energy), 0.1);
}

TEST(PipelineIntervals, TakeOtherChangesOfClock) {
  ModelledPipeline four(4, 6, some_errors, true);
  SwitchModel costly;
  costly.core = {.stall_s = 0.05, .energy_j = 50.0};
  const PipelinePlanner planner(four.work);
  const double deadline_s = 1.05 * planner.baseline().time_s;
  const PipelinePlan plan = planner.plan({&deadline_s, 1}).front().plan;
  const SavingInterval asked =
      four.of(plan, {.against = nullptr, .until_vs_default = {}, .switching = &costly});
  EXPECT_GT(asked.energy.low_pct, four.of(plan).energy.high_pct);
  four.switching = costly;
  const SavingInterval built = four.of(plan);
  EXPECT_EQ(asked.energy.low_pct, built.energy.low_pct);
  EXPECT_EQ(asked.time.high_pct, built.time.high_pct);
}

TEST(PipelineIntervals, DefaultClocksChangeNothingWhateverTheErrors) {
  const ModelledPipeline two(2, 3, {.shared = {0.1, 0.1}, .own = {0.1, 0.1}}, true);
  const SavingInterval interval = two.of(highest_clocks(two.work));
  EXPECT_NEAR(interval.time.low_pct, 0.0, 1e-9);
  EXPECT_NEAR(interval.time.high_pct, 0.0, 1e-9);
  EXPECT_NEAR(interval.energy.low_pct, 0.0, 1e-9);
  EXPECT_NEAR(interval.energy.high_pct, 0.0, 1e-9);
}

// Stages run the same GPU model: what it is off by does not average out over them.
TEST(PipelineIntervals, ErrorsAreSharedByTheStages) {
  const ModelErrors shared{.shared = {0.02, 0.0}, .own = {}};
  const ModelledPipeline one(1, 4, shared), four(4, 4, shared);
  const double of_one = width(one.of(one.uniform(slow)).time);
  const double of_four = width(four.of(four.uniform(slow)).time);
  EXPECT_GT(of_one, 5.0);
  EXPECT_NEAR(of_four, of_one, 0.05 * of_one);
  // The energy of passes is known exactly here: longer waits draw the blocked power.
  EXPECT_LT(width(four.of(four.uniform(slow)).energy), 0.3 * of_four);
}

// A pass off the critical path may take longer without harm; the errors of those on it delay all.
TEST(PipelineIntervals, OnlyCriticalPassesDelayTheIteration) {
  const ModelledPipeline four(4, 4, {.shared = {0.02, 0.0}, .own = {}});
  PipelinePlan first = highest_clocks(four.work);
  const PipelinePlan all = four.uniform(slow);
  for (std::size_t i = 0; i < first.option_of_pass.size(); ++i) {
    const PipelinePass& pass = four.work.schedule.passes[i];
    if (pass.stage == 3 && pass.kind == PassKind::forward && pass.microbatch == 0)
      first.option_of_pass[i] = all.option_of_pass[i];
  }
  const double of_all = width(four.of(all).time), of_one = width(four.of(first).time);
  EXPECT_GT(of_one, 0.0);
  EXPECT_LT(of_one, 0.3 * of_all);
}

// Recomputing runs the forward kernels, and errs as they do.
TEST(PipelineIntervals, RecomputingErrsLikeTheForwardPass) {
  const ModelledPipeline plain(2, 3, {.shared = {}, .own = {0.02, 0.02}}),
      twice(2, 3, {.shared = {}, .own = {0.02, 0.02}}, false, ScheduleKind::early_recompute);
  PipelinePlan slowed = highest_clocks(twice.work);
  for (std::size_t i = 0; i < slowed.option_of_pass.size(); ++i) {
    const PassType& type = twice.work.types[index(twice.work.type_of_pass[i])];
    if (type.kind == PassKind::recompute) slowed.option_of_pass[i] = OptionId{3};
  }
  const SavingInterval interval = twice.of(slowed);
  EXPECT_GT(width(interval.energy), 0.01);
  EXPECT_GT(width(plain.of(plain.uniform(slow)).energy), width(interval.energy));
}

TEST(PipelineIntervals, HoldTheEstimate) {
  const ModelledPipeline four(4, 6, some_errors, true);
  const PipelinePlanner planner(four.work);
  for (const double slack : {1.0, 1.05, 1.2}) {
    const double deadline_s = slack * planner.baseline().time_s;
    const PipelineResult best = planner.plan({&deadline_s, 1}).front();
    const SavingInterval interval = four.of(best.plan);
    const double energy_pct = change_pct(best.run.energy_j, planner.baseline().energy_j);
    EXPECT_LE(interval.energy.low_pct, energy_pct);
    EXPECT_GE(interval.energy.high_pct, energy_pct);
    EXPECT_LT(interval.energy.low_pct, interval.energy.median_pct);
    EXPECT_GT(interval.energy.high_pct, interval.energy.median_pct);
    EXPECT_LT(width(interval.energy), 30.0);
  }
}

}  // namespace
}  // namespace rubato
