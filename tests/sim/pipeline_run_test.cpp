// The discrete-event simulation against sums by hand.

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "sim/pipeline_run.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/small_pipeline.hpp"

namespace rubato {
namespace {

// Two stages, one microbatch: F0 (1 s), F1 (2 s), B1 (4 s), B0 (3 s); 5 W while blocked.
PipelineWork two_stages(double transfer_s = 0.0) {
  return pipeline_work(make_schedule({.stages = 2, .microbatches = 1, .transfer_s = transfer_s}),
                       {"hand",
                        {{0, PassKind::forward, {{1000, 1, 10}, {800, 2, 8}}},
                         {0, PassKind::backward, {{1000, 3, 30}}},
                         {1, PassKind::forward, {{1000, 2, 20}}},
                         {1, PassKind::backward, {{1000, 4, 40}}}}},
                       5.0);
}

TEST(PipelineRun, AddsUpByHand) {
  const PipelineWork work = two_stages(0.5);
  const PipelineRun run = simulate(work, highest_clocks(work));
  EXPECT_DOUBLE_EQ(run.time_s, 11.0);  // 1 + 0.5 + 2 + 4 + 0.5 + 3
  EXPECT_DOUBLE_EQ(run.pass_energy_j, 100.0);
  EXPECT_DOUBLE_EQ(run.blocked_energy_j, 5.0 * (2 * 11.0 - 10.0));
  EXPECT_DOUBLE_EQ(run.energy_j, 160.0);
  for (const TimedPass& pass : run.passes) EXPECT_TRUE(pass.critical);
}

// GPipe, two microbatches: the second stage is held 0.25 s after each of its first three passes,
// and nothing else decides when the last one may begin.
TEST(PipelineRun, APassHoldsItsStageForASend) {
  const PipelineWork work = pipeline_work(
      make_schedule({.kind = ScheduleKind::gpipe, .stages = 2, .microbatches = 2, .hold_s = 0.25}),
      {"hand",
       {{0, PassKind::forward, {{1000, 1, 10}}},
        {0, PassKind::backward, {{1000, 3, 30}}},
        {1, PassKind::forward, {{1000, 2, 20}}},
        {1, PassKind::backward, {{1000, 4, 40}}}}},
      5.0);
  const PipelineRun run = simulate(work, highest_clocks(work));
  EXPECT_DOUBLE_EQ(run.time_s, 1.0 + 2.0 + 2.0 + 4.0 + 4.0 + 3 * 0.25 + 3.0);
  EXPECT_DOUBLE_EQ(run.blocked_energy_j, 5.0 * (2 * run.time_s - 20.0));
}

TEST(PipelineRun, AClockSwitchHidesInAWait) {
  const PipelineWork work = two_stages();
  PipelinePlan plan = highest_clocks(work);
  plan.option_of_pass[0] = OptionId{1};  // F0 at 800 MHz, B0 at 1000: two switches
  const PipelineRun run =
      simulate(work, plan, {.switching = {.core = {.stall_s = 2.0, .energy_j = 1.0}, .mem = {}}});
  EXPECT_EQ(run.clock_switches, 2U);
  // The first forward pass waits 2 s for its clock; the stage then waits 6 s for B1 anyway.
  EXPECT_DOUBLE_EQ(run.time_s, 2.0 + 2.0 + 2.0 + 4.0 + 3.0);
  EXPECT_DOUBLE_EQ(run.switch_energy_j, 2.0);
}

// B0 ran for 3 s at its clock when the iteration began; F0 takes 2 s, and B0 waits 8 s for B1.
TEST(PipelineRun, AChangeAskedForAheadWaitsForTheOneBefore) {
  const PipelineWork work = two_stages();
  PipelinePlan plan = highest_clocks(work);
  plan.option_of_pass[0] = OptionId{1};
  const auto time_s = [&](double lead_s, double dwell_s) {
    return simulate(work, plan,
                    {.switching = {.core = {.lead_s = lead_s}, .mem = {}, .dwell_s = dwell_s}})
        .time_s;
  };
  EXPECT_DOUBLE_EQ(time_s(3.0, 0.0), 2.0 + 2.0 + 4.0 + 3.0);        // asked for as B0 began
  EXPECT_DOUBLE_EQ(time_s(4.0, 0.0), 1.0 + 2.0 + 2.0 + 4.0 + 3.0);  // 1 s too late
  EXPECT_DOUBLE_EQ(time_s(3.0, 1.0), 1.0 + 2.0 + 2.0 + 4.0 + 3.0);
  // F0's clock is in force at 7 s, so B0's comes at 17 s.
  EXPECT_DOUBLE_EQ(time_s(10.0, 0.0), 17.0 + 3.0);
}

TEST(PipelineRun, MemoryClocksCostAsTheyDo) {
  PipelineWork work = two_stages();
  work.types[0].options[1].mem_mhz = 405;
  PipelinePlan plan = highest_clocks(work);
  plan.option_of_pass[0] = OptionId{1};
  const PipelineRun run =
      simulate(work, plan,
               {.switching = {.core = {.energy_j = 1.0},
                              .mem = SwitchCost{.stall_s = 0.5, .energy_j = 2.0}}});
  EXPECT_DOUBLE_EQ(run.switch_energy_j, 6.0);  // both clocks, there and back
  EXPECT_DOUBLE_EQ(run.time_s, 0.5 + 2.0 + 2.0 + 4.0 + 3.0);
}

TEST(PipelineRun, DisturbancesLengthenTheIteration) {
  const PipelineWork work = two_stages();
  const PipelinePlan plan = highest_clocks(work);
  PipelineRunOptions options;
  options.disturbance.slowdown_of_stage = {1.0, 2.0};
  options.disturbance.input_delay_s = 0.25;
  EXPECT_DOUBLE_EQ(simulate(work, plan, options).time_s, 0.25 + 1.0 + 4.0 + 8.0 + 3.0);
}

TEST(PipelineRun, JitterRepeatsAndHasMeanOne) {
  const PipelineWork work = two_stages();
  const PipelinePlan plan = highest_clocks(work);
  PipelineRunOptions options;
  options.disturbance = {.jitter_frac = 0.05, .seed = 7};
  EXPECT_EQ(simulate(work, plan, options).time_s, simulate(work, plan, options).time_s);
  const JitterSummary summary = simulate_jitter(work, plan, options, 2000);
  EXPECT_NEAR(summary.mean_time_s, 10.0, 0.05);  // a chain: no pass waits, so means add
  EXPECT_GT(summary.p95_time_s, summary.mean_time_s);
  EXPECT_LE(summary.p95_time_s, summary.max_time_s);
}

RC_GTEST_PROP(PipelineRun, IsTheLongestPathAndMarksOne, ()) {
  const PipelineWork work = arbitrary_work(*rc::gen::inRange<std::uint32_t>(1, 5),
                                           *rc::gen::inRange<std::uint32_t>(1, 6), 1);
  const PipelineRun run = simulate(work, highest_clocks(work));
  std::vector<double> duration_s;
  for (const TimedPass& pass : run.passes) duration_s.push_back(pass.end_s - pass.start_s);
  RC_ASSERT(run.time_s == longest_path_s(crash_problem(work), duration_s));
  // The critical passes hold a path: each either starts at 0 or where a critical one lets it.
  for (std::size_t i = 0; i < run.passes.size(); ++i) {
    if (!run.passes[i].critical || run.passes[i].start_s == 0.0) continue;
    RC_ASSERT(std::ranges::any_of(work.schedule.dependencies, [&](const Dependency& d) {
      return index(d.to) == i && run.passes[index(d.from)].critical &&
             run.passes[index(d.from)].end_s + d.lag_s == run.passes[i].start_s;
    }));
  }
}

TEST(PipelineRun, RejectsWhatDoesNotFit) {
  const PipelineWork work = two_stages();
  expect_error<DataError>([&] { (void)simulate(work, {}); }, "expected 4, one per pass");
  PipelinePlan plan = highest_clocks(work);
  plan.option_of_pass[1] = OptionId{3};
  expect_error<DataError>([&] { (void)simulate(work, plan); }, "asks for option 3 of backward");
  PipelineRunOptions options;
  options.disturbance.slowdown_of_stage = {1.0, 0.5};
  expect_error<UsageError>([&] { (void)simulate(work, highest_clocks(work), options); },
                           "slowdown is 0.5; expected a number >= 1");
}

}  // namespace
}  // namespace rubato
