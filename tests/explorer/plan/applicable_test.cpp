#include "explorer/plan/applicable.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "explorer/exploration.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/plan/trace_step.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

using Step = std::vector<AppliedStretch>;

constexpr MemStateId slow{0}, fast{1};

AppliedStretch stretch(double time_s, double core_mhz, MemStateId mem = slow) {
  return {.time_s = time_s, .clock = {.mem = mem, .core_mhz = core_mhz}};
}

SwitchModel taking(double core_s) { return {.core = {.lead_s = core_s}, .mem = {}}; }

PlanVerdict verdict_of(Step step, const SwitchModel& switching) {
  return applicable(std::vector<AppliedTarget>{{"", std::move(step)}}, switching);
}

TEST(Applicable, OneClockIsHoweverShortTheStep) {
  EXPECT_EQ(short_frac(Step{stretch(1e-6, 900)}, taking(1.0)), 0.0);
  EXPECT_EQ(short_frac(Step{stretch(1e-6, 900), stretch(1e-6, 900)}, taking(1.0)), 0.0);
  EXPECT_EQ(short_frac({}, taking(1.0)), 0.0);
  EXPECT_TRUE(verdict_of({stretch(1e-6, 900)}, taking(1.0)).applicable);
}

TEST(Applicable, StretchesOfTwoLatenciesAreLongEnough) {
  EXPECT_EQ(short_frac(Step{stretch(0.9, 900), stretch(0.1, 1200)}, taking(0.05)), 0.0);
  EXPECT_DOUBLE_EQ(short_frac(Step{stretch(0.9, 900), stretch(0.1, 1200)}, taking(0.0501)), 0.1);
}

TEST(Applicable, FivePercentOfAStepMayBeShort) {
  const auto with_short = [](double frac) {
    return verdict_of({stretch(1.0 - frac, 900), stretch(frac, 1200)}, taking(0.1));
  };
  EXPECT_TRUE(with_short(0.0499).applicable);
  const PlanVerdict none = with_short(0.0501);
  EXPECT_FALSE(none.applicable);
  EXPECT_EQ(none.because, "5 % of its time is in stretches shorter than 2 switches (100 ms each)");
}

// The law of a step that repeats: it is no matter where one begins to count, nor how the time at
// one clock is cut.
TEST(Applicable, AStepHasNoBegin) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time_s(0.01, 0.4);
  std::uniform_int_distribution<int> clock(0, 2);
  for (int i = 0; i < 200; ++i) {
    Step step;
    for (int k = 0; k < 8; ++k)
      step.push_back(stretch(time_s(random), 900.0 + 300 * clock(random)));
    const double frac = short_frac(step, taking(0.1));
    std::rotate(step.begin(), step.begin() + 1 + i % 7, step.end());
    EXPECT_NEAR(short_frac(step, taking(0.1)), frac, 1e-12);
    AppliedStretch& cut = step[static_cast<std::size_t>(i % 8)];
    cut.time_s /= 2.0;
    step.insert(step.begin() + i % 8, step[static_cast<std::size_t>(i % 8)]);
    EXPECT_NEAR(short_frac(step, taking(0.1)), frac, 1e-12);
  }
}

// A change of the memory clock takes longer, and both clocks one after the other.
TEST(Applicable, AStretchLastsForTheChangesAtItsEnds) {
  SwitchModel switching = taking(0.01);
  switching.mem = SwitchCost{.lead_s = 0.04};
  const auto frac = [&](double between_s, MemStateId mem) {
    return short_frac(
        Step{stretch(0.5, 900), stretch(between_s, 1200, mem), stretch(0.5, 1500, mem)}, switching);
  };
  EXPECT_EQ(frac(0.02, slow), 0.0);
  EXPECT_GT(frac(0.0999, fast), 0.0);
  EXPECT_EQ(frac(0.1, fast), 0.0);
}

TEST(Applicable, MemoryClocksChangeOnlyWhereItIsKnownWhatThatTakes) {
  const Step step{stretch(0.5, 900, slow), stretch(0.5, 900, fast)};
  SwitchModel switching = taking(0.01);
  EXPECT_TRUE(verdict_of(step, switching).applicable);
  switching.knows_memory = false;
  EXPECT_FALSE(verdict_of(step, switching).applicable);
  EXPECT_TRUE(
      verdict_of({stretch(0.5, 900, fast), stretch(0.5, 1200, fast)}, switching).applicable);
}

TEST(Applicable, APowerLimitHoldsForAWholeStep) {
  Step step{stretch(0.5, 900), stretch(0.5, 900)};
  for (AppliedStretch& one : step) one.clock.power_limit_w = 300.0;
  EXPECT_TRUE(verdict_of(step, {}).applicable);
  step.back().clock.power_limit_w = 250.0;
  EXPECT_FALSE(verdict_of(step, {}).applicable);
}

TEST(Applicable, NamesTheFirstTargetThatCannotBeSet) {
  const Step good{stretch(1.0, 900)}, bad{stretch(0.9, 900), stretch(0.1, 1200)};
  const std::vector<AppliedTarget> targets{{"rank 0", good}, {"rank 1", bad}, {"rank 2", bad}};
  EXPECT_EQ(applicable(targets, taking(0.1)).because,
            "rank 1: 10 % of its time is in stretches shorter than 2 switches (100 ms "
            "each)");
  EXPECT_TRUE(applicable(targets, taking(0.05)).applicable);
}

TEST(SwitchingDefaults, WhatIsTakenAsFreeTakesWhatTheSpecKnows) {
  GpuSpec spec;
  spec.switching.core_s = 0.03;
  EXPECT_EQ(switching_in_earnest({}, spec).core.latency_s(), 0.03);
  EXPECT_EQ(switching_in_earnest(taking(0.01), spec).core.latency_s(), 0.01);
  EXPECT_FALSE(switching_in_earnest({}, spec).knows_memory);
  spec.switching.mem_s = 0.1;
  EXPECT_TRUE(switching_in_earnest({}, spec).knows_memory);
  spec.switching = {};
  EXPECT_TRUE(switching_in_earnest({}, spec).knows_memory) << "the guess is of any change";
}

// Whatever two changes are at its ends, a run that the search takes to be long enough is not short.
TEST(SwitchingDefaults, NoRunOfASearchIsShort) {
  for (const double stall_frac : {0.0, 0.3, 1.0}) {
    for (const double mem_s : {0.0, 0.02, 0.5}) {
      SwitchModel known = taking(0.03 * (1.0 - stall_frac));
      known.core.stall_s = 0.03 * stall_frac;
      if (mem_s > 0.0) known.mem = SwitchCost{.lead_s = mem_s};
      const SwitchModel searched = applicable_switching(known);
      for (const bool core : {false, true}) {
        for (const bool mem : {false, true}) {
          if (!core && !mem) continue;
          const double run_s = searched.dwell_s + searched.change(core, mem).lead_s;
          const MemStateId middle_mem = mem ? fast : slow;
          const double last_mhz = core ? 1500.0 : 1200.0;
          const Step step{stretch(9.0, 900), stretch(run_s, 1200, middle_mem),
                          stretch(9.0, last_mhz, slow)};
          EXPECT_EQ(short_frac(step, known), 0.0) << stall_frac << ' ' << mem_s;
        }
      }
    }
  }
}

// Launch by launch, repeats written out.
TEST(AppliedStep, HasTheTimeOfEachLaunchAtItsClock) {
  const Trace trace = load_trace("gpt3-xl");
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid = make_clock_grid(spec, "");
  const GpuModel model(spec, trace);
  const ProfileTable table =
      profile_table(evaluate_all(model, grid), trace.kernels.size(), grid.size());
  std::mt19937 random(5);
  for (const std::uint32_t clocks : {1U, 2U, 5U}) {
    Plan plan = uniform_plan(trace, ClockId{0});
    for (ClockId& clock : plan.clock_of_site)
      clock = ClockId{static_cast<std::uint32_t>(random()) % clocks};
    Step expected;
    std::size_t site = 0;
    for (const Segment& segment : trace.segments) {
      for (std::uint64_t repeat = 0; repeat < segment.repeat; ++repeat) {
        for (std::size_t i = 0; i < segment.launches.size(); ++i) {
          const ClockId clock = plan.clock_of_site[site + i];
          const double time_s = table.cost(index(segment.launches[i]), clock).time_s;
          if (expected.empty() || expected.back().clock != grid[clock])
            expected.push_back({.time_s = 0.0, .clock = grid[clock]});
          expected.back().time_s += time_s;
        }
      }
      site += segment.launches.size();
    }
    const auto step = applied_step(trace, plan, grid, table);
    std::uint64_t stretches = 0;
    for (const AppliedStretch& one : step) stretches += one.count;
    EXPECT_EQ(stretches, expected.size());
    for (std::uint32_t c = 0; c < grid.size(); ++c) {
      const ClockPair clock = grid[ClockId{c}];
      const auto time_s = [&](const Step& list) {
        double sum_s = 0.0;
        for (const AppliedStretch& one : list)
          sum_s += one.clock == clock ? static_cast<double>(one.count) * one.time_s : 0.0;
        return sum_s;
      };
      EXPECT_NEAR(time_s(step), time_s(expected), 1e-9 * time_s(expected));
    }
    for (const double latency_s : {1e-6, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.1})
      EXPECT_NEAR(short_frac(step, taking(latency_s)), short_frac(expected, taking(latency_s)),
                  1e-9)
          << clocks << ' ' << latency_s;
  }
}

// However often they repeat: what stands for many is not written out.
TEST(AppliedStep, CountsRepeats) {
  Trace trace = load_trace("gpt3-xl");
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid = make_clock_grid(spec, "");
  const GpuModel model(spec, trace);
  const ProfileTable table =
      profile_table(evaluate_all(model, grid), trace.kernels.size(), grid.size());
  Plan plan = uniform_plan(trace, ClockId{0});
  for (std::size_t i = 0; i < plan.clock_of_site.size(); i += 3) plan.clock_of_site[i] = ClockId{1};
  const std::size_t listed = applied_step(trace, plan, grid, table).size();
  for (Segment& segment : trace.segments) segment.repeat *= 40'000'000U;
  EXPECT_LE(applied_step(trace, plan, grid, table).size(), 3 * listed);
}

// What a search for segments finds can be set, with the memory clock that it is not known how to
// change left alone; and plans of free changes are judged all the same.
TEST(SwitchingDefaults, SegmentsCanBeApplied) {
  for (const bool knows_core : {false, true}) {
    ExplorationInput input{.trace = load_trace("gpt3-xl"),
                           .spec = load_gpu_spec("rtx-3080-ti"),
                           .grid = "",
                           .power_limit_w = {},
                           .switching = {},
                           .questions = {}};
    if (knows_core) input.spec.switching.core_s = 0.005;  // and nothing of the memory clock
    for (const double slack_frac : {0.0, 0.02, 0.05}) {
      input.questions.push_back(
          {Granularity::segment, Aggregation::global, LeastWaste{slack_frac}, true});
    }
    input.questions.push_back({Granularity::kernel, Aggregation::global, LeastWaste{0.05}});
    const Exploration found = explore(input);
    for (const PlanResult& plan : found.plans) {
      ASSERT_TRUE(plan.found());
      const bool segments = plan.question.granularity == Granularity::segment;
      EXPECT_EQ(plan.verdict.applicable, segments) << plan.verdict.because;
      const bool marked =
          std::ranges::find(plan.marks, MarkKind::not_applicable, &Mark::kind) != plan.marks.end();
      EXPECT_EQ(marked, !segments);
      std::set<MemStateId> memory;
      for (const ClockId clock : plan.plan.clock_of_site) memory.insert(found.grid[clock].mem);
      EXPECT_TRUE(!segments || !knows_core || memory.size() == 1U);
    }
    const double saved = 1.0 - found.plans[2].sim.total.energy_j / found.baseline.total.energy_j;
    EXPECT_GT(saved, knows_core ? 0.1 : 0.18);
  }
}

}  // namespace
}  // namespace rubato
