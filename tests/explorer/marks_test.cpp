#include "explorer/marks.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "explorer/exploration.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/uncertainty.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/held_memory.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

Exploration explored(const char* gpu, std::optional<double> power_limit_w = {},
                     const Goal& goal = LeastWaste{}, const SwitchModel& switching = {}) {
  return explore({.trace = load_trace("gpt3-xl"),
                  .spec = load_gpu_spec(gpu),
                  .grid = "full",
                  .power_limit_w = power_limit_w,
                  .switching = switching,
                  .questions = {{Granularity::run, Aggregation::global, goal},
                                {Granularity::kernel, Aggregation::global, goal}}});
}

const Mark* find(const std::vector<Mark>& marks, MarkKind kind) {
  const auto found = std::ranges::find(marks, kind, &Mark::kind);
  return found == marks.end() ? nullptr : &*found;
}

// A cap below the power at the lowest clock is not enforced: the clock stops there, and a lower cap
// changes nothing more (RTX 4000 Ada at 30, 40 and 50 W: one speed, 51 to 61 W).
TEST(Marks, ALimitBelowThePowerAtTheLowestClockIsNotReached) {
  const Trace trace = load_trace("gpt3-xl");
  const Exploration at_60 = explored("a10", 60.0), at_61 = explored("a10", 61.0);
  constexpr double rounding = 1e-6;
  EXPECT_NEAR(at_60.baseline.total.time_s / at_61.baseline.total.time_s, 1.0, rounding);
  EXPECT_NEAR(at_60.baseline.total.energy_j / at_61.baseline.total.energy_j, 1.0, rounding);
  const GpuModel free(load_gpu_spec("a10"), trace);
  const ClockGrid lowest = make_clock_grid(free.spec(), "mem=6251 core=210");
  const SimResult slowest =
      simulate(trace, free, lowest, uniform_plan(trace, *lowest.find("6251/210")));
  EXPECT_NEAR(at_60.baseline.total.time_s / slowest.total.time_s, 1.0, rounding);
  EXPECT_GT(at_60.baseline.total.average_power_w(), 61.0);
  for (const Exploration* found : {&at_60, &at_61}) {
    const Mark* mark = find(found->baseline_marks, MarkKind::limit_not_reached);
    ASSERT_NE(mark, nullptr);
    EXPECT_NE(mark->reason.find("100 % of the time"), std::string::npos);
    const std::size_t draws = mark->reason.find("draws ") + 6,
                      to = mark->reason.find(" to ", draws);
    EXPECT_LE(std::stod(mark->reason.substr(draws)), found->baseline.total.average_power_w());
    EXPECT_GE(std::stod(mark->reason.substr(to + 4)), found->baseline.total.average_power_w());
    EXPECT_LT(std::stod(mark->reason.substr(to + 4)), 200.0);
    EXPECT_NE(mark->reason.find("210 MHz"), std::string::npos);
    for (const PlanResult& plan : found->plans)
      EXPECT_NE(find(plan.marks, MarkKind::limit_not_reached), nullptr);
  }
  const Exploration measured = explored("a40", 100.0);
  const Mark* beyond = find(measured.baseline_marks, MarkKind::limit_not_reached);
  ASSERT_NE(beyond, nullptr);
  EXPECT_NE(beyond->reason.find("power below 855 MHz is a guess"), std::string::npos);
  EXPECT_EQ(find(explored("a10").baseline_marks, MarkKind::limit_not_reached), nullptr);
  EXPECT_EQ(find(explored("a10", 120.0).baseline_marks, MarkKind::limit_not_reached), nullptr);
}

TEST(Marks, ClocksBeyondTheMeasuredOnes) {
  // The default, 1770 MHz, is beyond the last clock of the sweep, 1710.
  const Exploration found = explored("rtx-8000");
  const Mark* beyond = find(found.baseline_marks, MarkKind::clocks_not_fitted);
  ASSERT_NE(beyond, nullptr);
  EXPECT_NE(beyond->reason.find("1770 MHz"), std::string::npos);
  EXPECT_NE(beyond->reason.find("705 to 1710 MHz"), std::string::npos);
  EXPECT_EQ(find(explored("a100-sxm4-80gb").baseline_marks, MarkKind::clocks_not_fitted), nullptr);
  // The limit takes the A40 below its first measured clock, 855 MHz.
  EXPECT_NE(find(explored("a40", 150.0).baseline_marks, MarkKind::clocks_not_fitted), nullptr);
}

TEST(Marks, ShareOfTheTimeBeyondTheMeasuredClocks) {
  const Trace trace = load_trace("gpt3-xl");
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.fitted_range = FittedRange{.min_core_mhz = 1000.0, .max_core_mhz = 1410.0};
  const GpuModel model(spec, trace);
  const ClockGrid grid = make_clock_grid(spec, "mem=1593 core=705,1410");
  Plan plan = uniform_plan(trace, *grid.find("1593/1410"));
  EXPECT_TRUE(marks_of_clocks(trace, model, grid, plan, evaluate_all(model, grid)).empty());
  constexpr std::size_t qkv = 2;
  plan.clock_of_site[qkv] = *grid.find("1593/705");
  const SimResult run = simulate(trace, model, grid, plan);
  const KernelId slowed = sites(trace, plan)[qkv].kernel;
  const double share_pct = 100.0 * run.by_kernel[index(slowed)].time_s / run.total.time_s;
  const std::vector<Mark> marks =
      marks_of_clocks(trace, model, grid, plan, evaluate_all(model, grid));
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(std::stod(marks.front().reason), std::round(share_pct));
}

TEST(Marks, AStepThatDoesNotFit) {
  TrainingStep shape = gpt_preset("gpt3-175b");
  const Trace large = generate_training_step(shape).trace;
  // bf16 weights and gradients; Brown et al. count 174.6 billion parameters.
  EXPECT_NEAR(held_memory(large)->bytes / (4.0 * 174.6e9), 1.0, 0.01);
  shape.tensor_parallel = 8;
  shape.optimizer = true;
  EXPECT_NEAR(held_memory(generate_training_step(shape).trace)->bytes / (16.0 / 8.0 * 174.6e9), 1.0,
              0.01);
  const auto mark = mark_of_memory(large, load_gpu_spec("rtx-3080-ti"));
  ASSERT_TRUE(mark.has_value());
  EXPECT_NE(mark->reason.find("weights and gradients alone are"), std::string::npos);
  EXPECT_NE(mark->reason.find("has 12 GB"), std::string::npos);
  const auto updated =
      mark_of_memory(generate_training_step(shape).trace, load_gpu_spec("rtx-3080-ti"));
  ASSERT_TRUE(updated.has_value());
  EXPECT_NE(updated->reason.find("gradients and optimizer state alone are"), std::string::npos);
  EXPECT_FALSE(mark_of_memory(load_trace("gpt3-xl"), load_gpu_spec("rtx-3080-ti")));
  EXPECT_FALSE(mark_of_memory(large, load_gpu_spec("v100-sxm2")));  // 16 or 32 GB: not known
  Trace captured = large;
  captured.provenance.generator = "Kineto";
  EXPECT_FALSE(held_memory(captured));
}

TEST(Marks, AStepOfFusedKernelsCountsItsActivations) {
  TrainingStep step{.model = load_model_shape("llama3-8b"), .batch = 1, .seq = 2048};
  const Trace whole = generate_training_step(step).trace;
  const double bytes = memory_per_rank(step).total();
  EXPECT_NEAR(held_memory(whole)->bytes, bytes, 0.5);
  const auto mark =
      mark_of_memory(whole, load_gpu_spec("a100-sxm4-80gb"));  // 16 bytes x 8.03 B, and 9.7 GB
  ASSERT_TRUE(mark.has_value());
  EXPECT_NE(mark->reason.find("optimizer state and activations are 138 GB"), std::string::npos)
      << mark->reason;
  TrainingStep still = step;
  still.optimizer = false;
  const auto kept =
      mark_of_memory(generate_training_step(still).trace, load_gpu_spec("rtx-3080-ti"));
  ASSERT_TRUE(kept.has_value());
  EXPECT_NE(kept->reason.find("weights, gradients and activations are 42 GB"), std::string::npos)
      << kept->reason;
  step.tensor_parallel = 4;
  EXPECT_FALSE(mark_of_memory(generate_training_step(step).trace, load_gpu_spec("a100-sxm4-80gb")));
}

TEST(Marks, ChangesOfClockAreCounted) {
  const LeastWaste slack{.slack_frac = 0.05};
  const Exploration found = explored("a100-sxm4-80gb", {}, slack);
  const PlanResult& plan = found.plans.at(1);
  ASSERT_GT(plan.sim.total.clock_switches, 0U);
  ASSERT_TRUE(plan.counted.has_value());
  const Trace trace = load_trace("gpt3-xl");
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Totals real =
      simulate(trace, GpuModel(spec, trace), found.grid, plan.plan, switch_model(spec)).total;
  EXPECT_EQ(plan.counted->time_s, real.time_s);
  EXPECT_EQ(plan.counted->energy_j, real.energy_j);
  EXPECT_NE(find(plan.marks, MarkKind::changes_ignored), nullptr);
  const bool missed = real.time_s > 1.05 * found.baseline.total.time_s;
  EXPECT_EQ(find(plan.marks, MarkKind::slack_missed) != nullptr, missed);
  EXPECT_FALSE(found.plans.at(0).counted);  // one clock
  // Not where plans know it already.
  EXPECT_FALSE(explored("a100-sxm4-80gb", {}, slack, switch_model(spec)).plans.at(1).counted);
  // Where nobody measured, the guess counts.
  const PlanResult guessed = explored("rtx-3080-ti", {}, slack).plans.at(1);
  ASSERT_TRUE(guessed.counted);
  EXPECT_GT(guessed.counted->time_s, guessed.sim.total.time_s);
  EXPECT_NE(find(guessed.marks, MarkKind::changes_ignored)->reason.find("(a guess: nobody"),
            std::string::npos);
}

// A plan chosen as if changes were free has no plan's status once those counted make it late.
TEST(Marks, PlansLateWithTheirChangesKeepNoBudget) {
  constexpr double slack_frac = 0.05;
  std::size_t late = 0, in_time = 0;
  for (const double stall_s : {0.0, 1e-7, 2e-3}) {
    SwitchModel switching;
    switching.core = switching.mem.emplace() = {.stall_s = stall_s, .energy_j = 0.0, .lead_s = 0.0};
    const Exploration found =
        explored("a100-sxm4-80gb", {}, LeastWaste{.slack_frac = slack_frac}, switching);
    for (const PlanResult& plan : found.plans) {
      ASSERT_TRUE(plan.found());
      const bool is_late =
          plan.sim.total.time_s > (1.0 + slack_frac) * found.baseline.total.time_s * (1.0 + 1e-9);
      EXPECT_EQ(plan.status == SolveStatus::infeasible, is_late) << stall_s;
      ++(is_late ? late : in_time);
    }
  }
  EXPECT_GT(late, 0U);
  EXPECT_GT(in_time, 2U);
}

TEST(Marks, OfChangesAgainstWhatWasAsked) {
  const Goal goal = LeastWaste{.slack_frac = 0.10};
  const auto totals = [](double time_s, double energy_j, std::uint64_t switches) {
    Totals sum;
    sum.time_s = time_s;
    sum.energy_j = energy_j;
    sum.clock_switches = switches;
    return sum;
  };
  CountedPlan plan{goal, totals(1.0, 100.0, 0), totals(1.09, 80.0, 7), {}, 90.0};
  EXPECT_TRUE(marks_of_changes(plan).empty());
  plan.counted = totals(1.09, 80.0, 7);
  EXPECT_EQ(marks_of_changes(plan).size(), 1U);
  plan.counted = totals(1.11, 80.0, 7);
  EXPECT_NE(find(marks_of_changes(plan), MarkKind::slack_missed), nullptr);
  plan.counted.reset();
  plan.best_one_clock_j = 80.001;
  EXPECT_NE(find(marks_of_changes(plan), MarkKind::changes_for_nothing), nullptr);
  plan.planned.clock_switches = 0;
  EXPECT_TRUE(marks_of_changes(plan).empty());
}

// No single clock is 2 % faster than the default ones; that says nothing of plans per kernel.
TEST(Marks, WithoutAClockInTimeChangesAreNotForNothing) {
  const Exploration found = explored("rtx-3080-ti", {}, LeastWaste{.slack_frac = -0.02});
  ASSERT_FALSE(found.plans.at(0).found());
  ASSERT_TRUE(found.plans.at(1).found());
  EXPECT_EQ(find(found.plans.at(1).marks, MarkKind::changes_for_nothing), nullptr);
}

TEST(Marks, KernelsOfOtherShapesAreSaidBesideEverySaving) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.batch = 20;
  const Exploration found = explore({.trace = generate_training_step(shape).trace,
                                     .spec = load_gpu_spec("rtx-3080-ti"),
                                     .grid = {},
                                     .power_limit_w = {},
                                     .switching = {},
                                     .questions = {{Granularity::run}}});
  double scaled_s = 0.0;
  for (std::size_t k = 0; k < found.coefficient_sources.size(); ++k) {
    if (found.coefficient_sources[k] == CoefficientSource::scaled)
      scaled_s += found.baseline.by_kernel[k].time_s;
  }
  for (const std::vector<Mark>* marks : {&found.baseline_marks, &found.plans.at(0).marks}) {
    const Mark* mark = find(*marks, MarkKind::scaled);
    ASSERT_NE(mark, nullptr);
    EXPECT_NEAR(std::stod(mark->reason), 100.0 * scaled_s / found.baseline.total.time_s, 0.5);
  }
  EXPECT_EQ(find(explored("rtx-3080-ti").baseline_marks, MarkKind::scaled), nullptr);
}

// One stage and one microbatch are one GPU that runs the step.
TEST(Marks, OfThePassesOfAPipelineAreThoseOfTheStep) {
  StageModelInput input{
      .shape = gpt_preset("gpt3-xl"), .spec = load_gpu_spec("rtx-8000"), .grid = "coarse"};
  const ModelProfile profile = model_profile(input);
  const PipelineWork work = pipeline_work(make_schedule({}), profile.profile, 0.0);
  const Trace step = generate_training_step(input.shape).trace;
  const GpuModel model(input.spec, step);
  const ClockGrid grid = make_clock_grid(input.spec, input.grid);
  const auto of_pipeline = [&](std::size_t forward, std::size_t backward) {
    return marks_of_clocks(input.spec, profile.clocks, work,
                           {{id_at<OptionId>(forward), id_at<OptionId>(backward)}});
  };
  const std::vector<Mark> all = of_pipeline(0, 0);
  const std::vector<Mark> expected = marks_of_clocks(
      step, model, grid, uniform_plan(step, grid.default_clock()), evaluate_all(model, grid));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().reason, expected.at(0).reason);
  // The fit goes from 705 to 1710 MHz: one pass within it leaves the share of the other.
  const std::vector<ClockOption>& options = profile.profile.passes.front().options;
  const auto within = static_cast<std::size_t>(
      std::ranges::find_if(options,
                           [](const ClockOption& option) { return option.core_mhz < 1700.0; }) -
      options.begin());
  EXPECT_TRUE(of_pipeline(within, within).empty());
  const std::vector<Mark> half = of_pipeline(0, within);
  ASSERT_EQ(half.size(), 1U);
  EXPECT_LT(std::stod(half.front().reason), std::stod(all.front().reason));
}

// A GPU with two stages holds both.
TEST(Marks, OfStagesThatDoNotFit) {
  StageModelInput input{
      .shape = gpt_preset("gpt3-175b"), .spec = load_gpu_spec("a100-sxm4-80gb"), .stages = 16};
  EXPECT_EQ(find(marks_of_stages(input, 1), MarkKind::too_large), nullptr);  // 44 GB
  const std::vector<Mark> both = marks_of_stages(input, 2);
  ASSERT_NE(find(both, MarkKind::too_large), nullptr);
  EXPECT_EQ(find(both, MarkKind::too_large)->reason.find("of a stage weights and gradients alone"),
            0U);
  input.spec = load_gpu_spec("rtx-3080-ti");
  EXPECT_NE(find(marks_of_stages(input, 1), MarkKind::too_large), nullptr);
  EXPECT_NE(find(marks_of_stages(input, 1), MarkKind::scaled), nullptr);
  input.shape = gpt_preset("gpt3-xl");
  EXPECT_EQ(find(marks_of_stages(input, 1), MarkKind::too_large), nullptr);
}

// A kernel measured at one shape is scaled at another, and less is known of it the further it is.
TEST(Coverage, KernelsAtOtherShapesAreScaled) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  TrainingStep shape = gpt_preset("gpt3-xl");
  const Trace same = generate_training_step(shape).trace;
  const GpuModel known(spec, same);
  for (std::size_t k = 0; k < known.kernels(); ++k)
    EXPECT_EQ(known.source(id_at<KernelId>(k)), CoefficientSource::measured);
  double error = 0.0;
  for (const std::uint64_t batch : {30U, 20U, 10U}) {
    shape.batch = batch;
    const Trace other = generate_training_step(shape).trace;
    const GpuModel model(spec, other);
    const KernelId qkv{2};
    EXPECT_EQ(model.source(qkv), CoefficientSource::scaled);
    const Kernel& kernel = other.kernels[index(qkv)];
    EXPECT_NEAR(work_moved(*calibrated_kernel(spec, kernel), kernel),
                std::log(40.0 / static_cast<double>(batch)), 1e-9);
    const double now = coefficient_error(spec, kernel, CoefficientSource::scaled);
    EXPECT_GT(now, error);
    EXPECT_LT(now, coefficient_error(spec, kernel, CoefficientSource::derived));
    error = now;
  }
}

// What the database keeps of host power is this sentence.
TEST(Marks, HostPowerIsReadBackFromItsReason) {
  for (const double host_w : {0.5, 300.0, 1234.5}) {
    const Mark mark = mark_of_host_power(host_w);
    EXPECT_EQ(host_power_w_of(name_of(mark.kind), mark.reason), host_w);
    EXPECT_EQ(host_power_w_of(name_of(MarkKind::too_large), mark.reason), 0.0);
  }
}

}  // namespace
}  // namespace rubato
