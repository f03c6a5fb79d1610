#include "explorer/automatic.hpp"

#include <atomic>

#include <gtest/gtest.h>

#include "explorer/limited_exploration.hpp"
#include "explorer/switching/launch_sequence.hpp"
#include "tests/explorer/small_run.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

Exploration explored_on_3080_ti(const SwitchModel& switching, const std::string& grid = "paper") {
  return explore(paper_input(
      grid, {{Granularity::kernel}, {Granularity::run}, {Granularity::segment}}, switching));
}

// The simulator, which knows nothing of runs, replays each plan as the search counted it.
void expect_simulator_agrees(const Exploration& found, const PlanResult& plan) {
  EXPECT_NEAR(plan.sim.total.energy_j / plan.objective, 1.0, 1e-9);
  EXPECT_LE(plan.sim.total.time_s, found.baseline.total.time_s * (1.0 + 1e-9));
  EXPECT_EQ(plan.sim.late_launches, 0U);
}

TEST(Automatic, DegradesFromKernelsToTheIteration) {
  double last_j = 0.0;
  for (const double stall_s : {0.0, 1e-5, 1e-3, 0.15}) {
    const Exploration found = explored_on_3080_ti({.core = {.stall_s = stall_s}, .mem = {}});
    const PlanResult &kernel = found.plans[0], &iteration = found.plans[1],
                     &automatic = found.plans[2];
    expect_simulator_agrees(found, automatic);
    EXPECT_LE(automatic.sim.total.energy_j, iteration.sim.total.energy_j * (1.0 + 1e-12));
    EXPECT_GE(automatic.sim.total.energy_j, last_j * (1.0 - 1e-4));  // dearer changes, less saving
    EXPECT_LE(automatic.gap_frac, 1e-3);
    if (stall_s == 0.0) {
      EXPECT_NEAR(automatic.sim.total.energy_j / kernel.sim.total.energy_j, 1.0, 1e-3);
    }
    last_j = automatic.sim.total.energy_j;
  }
}

TEST(Exploration, PlansAloneAreTheSamePlans) {
  ExplorationInput input = paper_input("paper", {{Granularity::kernel}, {Granularity::segment}},
                                       {.core = {.stall_s = 1e-4}, .mem = {}});
  const Exploration whole = explore(input);
  input.plans_only = true;
  const Exploration alone = explore(input);
  for (std::size_t i = 0; i < whole.plans.size(); ++i) {
    EXPECT_EQ(alone.plans[i].plan.clock_of_site, whole.plans[i].plan.clock_of_site);
    EXPECT_EQ(alone.plans[i].sim.total.energy_j, whole.plans[i].sim.total.energy_j);
    EXPECT_TRUE(whole.plans[i].interval);
    EXPECT_FALSE(alone.plans[i].interval);
  }
  EXPECT_EQ(whole.fronts.size(), 1U);
  EXPECT_TRUE(alone.fronts.empty());
}

TEST(Automatic, AsksAheadOfTime) {
  const SwitchCost one_ms{.stall_s = 1e-3}, ahead{.lead_s = 1e-3};
  const Exploration stalled = explored_on_3080_ti({.core = one_ms, .mem = {}});
  const Exploration asked = explored_on_3080_ti({.core = ahead, .mem = {}});
  // Kernels that know nothing of it come too late at both; ahead of time costs less.
  EXPECT_GT(asked.plans[0].sim.late_launches, 0U);
  EXPECT_EQ(stalled.plans[0].sim.late_launches, 0U);
  expect_simulator_agrees(asked, asked.plans[2]);
  EXPECT_LT(asked.plans[2].sim.total.energy_j, stalled.plans[2].sim.total.energy_j);
  EXPECT_EQ(asked.plans[2].sim.switching.time_s, 0.0);
}

TEST(Automatic, TellsCoreFromMemory) {
  const SwitchCost quick{.lead_s = 1e-4}, slow{.stall_s = 0.02};
  const Exploration apart = explored_on_3080_ti({.core = quick, .mem = slow, .dwell_s = 1e-3});
  expect_simulator_agrees(apart, apart.plans[2]);
  // Memory clocks hardly change where that is dear, core clocks do.
  const Plan& plan = apart.plans[2].plan;
  const Trace trace = load_trace("gpt3-xl");
  std::size_t core_changes = 0, mem_changes = 0;
  std::optional<ClockPair> before;
  for (const ClockRun& run : runs_of(trace, plan)) {
    const ClockPair& clock = apart.grid[ClockId{run.clock}];
    if (before && before->mem != clock.mem) ++mem_changes;
    if (before && before->core_mhz != clock.core_mhz) ++core_changes;
    before = clock;
  }
  EXPECT_GT(core_changes, 40U);
  EXPECT_LT(mem_changes, 5U);
}

// The full grid holds the spec's first one, or clocks that come to the same: the search may lose no
// more on it than its gap says.
TEST(Automatic, MoreClocksAreHardlyWorse) {
  struct Case {
    const char* gpu;
    double lead_s, slack_frac;
  };
  for (const Case& of : {Case{"rtx-3080-ti", 0.006, 0.0}, Case{"rtx-3080-ti", 0.01, 0.02},
                         Case{"a100-sxm4-80gb", 0.022, 0.0}, Case{"a100-sxm4-80gb", 0.022, 0.02}}) {
    const auto on_grid = [&](const char* grid) {
      ExplorationInput input = paper_input(
          grid, {{Granularity::segment, Aggregation::global, LeastWaste{of.slack_frac, 0.0}}},
          {.core = {.lead_s = of.lead_s}, .mem = {}});
      input.spec = load_gpu_spec(of.gpu);
      return explore(input).plans.front();
    };
    const PlanResult full = on_grid("full");
    EXPECT_LE(full.objective, on_grid("").objective * (1.0 + 1e-4));
    EXPECT_LE(full.gap_frac, 1e-3);
  }
}

ExplorationInput hard_input() {
  return paper_input("", {{Granularity::segment}, {Granularity::kernel}},
                     {.core = {.stall_s = 1e-3}, .mem = {}});
}

// Nothing is proven in so little time; what is said holds all the same.
TEST(SearchLimits, EachQuestionIsAnsweredWhenTheTimeIsOver) {
  const ExplorationInput input = hard_input();
  const Exploration whole = explore(input), cut = explore(input, {.time_s = 1e-6}, {});
  ASSERT_EQ(cut.plans.size(), 2U);
  EXPECT_FALSE(cut.interrupted);
  const PlanResult& plan = cut.plans.front();
  EXPECT_EQ(plan.status, SolveStatus::time_limit);
  EXPECT_TRUE(plan.found());
  EXPECT_LE(plan.sim.total.time_s, cut.baseline.total.time_s * (1.0 + 1e-9));
  EXPECT_LE(plan.lower_bound, whole.plans.front().sim.total.energy_j * (1.0 + 1e-9));
  EXPECT_GT(plan.gap_frac, 0.0);
  EXPECT_GE(plan.sim.total.energy_j, whole.plans.front().sim.total.energy_j * (1.0 - 1e-9));
}

TEST(SearchLimits, ASearchEndsAtTheGap) {
  ExplorationInput input = hard_input();
  input.questions.pop_back();
  const double gap_frac = 0.01;
  const Exploration near = explore(input, {.gap_frac = gap_frac}, {});
  const Exploration whole = explore(input);
  EXPECT_LE(near.plans.front().gap_frac, gap_frac);
  EXPECT_GT(near.plans.front().gap_frac, whole.plans.front().gap_frac);
}

TEST(TimeLimit, StopsWithTheContextItIsMadeFrom) {
  std::atomic<bool> cancelled = false;
  const RunContext outer{.cancelled = &cancelled};
  const TimeLimit limit(1e9, outer), none({}, outer);
  EXPECT_FALSE(limit.context().stop_requested());
  cancelled = true;
  EXPECT_TRUE(none.context().stop_requested());
  while (!limit.context().stop_requested()) std::this_thread::yield();  // else the test times out
}

}  // namespace
}  // namespace rubato
