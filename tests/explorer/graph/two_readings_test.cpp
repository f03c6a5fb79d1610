// Plans of files that do not say whether a host waited for the GPU, against runs that are either.

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/graph/exploration.hpp"
#include "explorer/graph/rehearsal.hpp"
#include "explorer/marks.hpp"
#include "tests/made_exploration.hpp"
#include "tests/made_run.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

enum class Host { waits, works };

// Steps of two kernels of 30 ms. The host then waits for them and fetches for 8 ms, or works for as
// long without a look at the GPU.
Capture run_of(Host host) {
  MadeRun run(1);
  run.launch(0, run.kernel("a"), 10'000);
  run.sync_device();  // so that the file with calls is one that records waits
  for (int step = 0; step < 5; ++step) {
    run.launch(0, run.kernel("a"), 10'000'000);
    run.launch(0, run.kernel("b", KernelClass::softmax), 20'000'000);
    if (host == Host::waits) run.sync_device();
    run.spend(host == Host::waits ? 8'000'000 : 38'000'000);
  }
  run.launch(0, run.kernel("a"), 10'000'000);
  return std::move(run).finish();
}

Capture launches_alone(Capture capture) {
  capture.calls.clear();
  for (CapturedLaunch& launch : capture.launches) launch.call.reset();
  return capture;
}

GraphExplorationInput input_of(const Capture& capture) {
  GraphExplorationInput input = made_exploration_input(
      {}, {{Granularity::run, 0.02}, {Granularity::run, 0.05}, {Granularity::kernel, 0.1}});
  input.captures = {capture};
  return input;
}

// Of the host that is known, clock by kernel: what the plan really changes.
PlanChange true_change(const GraphExploration& found, const GraphPlanOutcome& plan, Host host) {
  const ExecutionGraph graph = capture_graph(run_of(host)).graph;
  const GraphModel model(graph, found.model->spec(), found.model->captured_clock());
  const ClockGrid& grid = found.planner->grid();
  GraphPlan same = uniform_plan(graph, grid.default_clock());
  const ExecutionGraph& planned = found.run->graph;
  const auto clock_of = [&](const std::string& kernel) {
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const Activity& one = planned.activities()[i];
      if (one.kind == ActivityKind::launch && planned.kernels()[index(one.kernel)].name == kernel)
        return plan.result.plan.clock_of_activity[i];
    }
    return grid.default_clock();
  };
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& one = graph.activities()[i];
    if (one.kind == ActivityKind::launch)
      same.clock_of_activity[i] = clock_of(graph.kernels()[index(one.kernel)].name);
  }
  GraphSimulator simulator(model, grid);
  return change_against(simulator.run(same),
                        simulator.run(uniform_plan(graph, grid.default_clock())));
}

TEST(TwoReadings, IntervalsHoldForAHostThatWaitsAndForOneThatWorks) {
  constexpr double alike = 1e-4;
  const auto is_inside = [](double low, double value, double high) {
    return value >= low - alike && value <= high + alike;
  };
  int saving = 0;
  double apart = 0.0;
  for (const Host recorded : {Host::waits, Host::works}) {
    const GraphExploration found = explore_captured(input_of(launches_alone(run_of(recorded))));
    ASSERT_EQ(found.plans.size(), 3U);
    for (const GraphPlanOutcome& plan : found.plans) {
      const auto mark = std::ranges::find(plan.marks, MarkKind::two_readings, &Mark::kind);
      ASSERT_NE(mark, plan.marks.end());
      saving += plan.change.energy_frac < -0.01;
      const PlanChange waits = true_change(found, plan, Host::waits),
                       works = true_change(found, plan, Host::works);
      apart = std::max(apart, waits.time_frac - works.time_frac);
      EXPECT_NEAR(plan.change.time_frac, waits.time_frac, alike);
      const std::string said =
          fmt::format("if they worked, the plan takes {} % time and {} % energy",
                      format_signed(percent * works.time_frac, 1),
                      format_signed(percent * works.energy_frac, 1));
      EXPECT_NE(mark->reason.find(said), std::string::npos) << mark->reason << "\n" << said;
      for (const PlanChange& truth : {waits, works}) {
        const GraphPlanInterval& of = plan.interval;
        EXPECT_TRUE(is_inside(of.low.time_frac, truth.time_frac, of.high.time_frac))
            << of.low.time_frac << " " << truth.time_frac << " " << of.high.time_frac;
        EXPECT_TRUE(is_inside(of.low.energy_frac, truth.energy_frac, of.high.energy_frac))
            << of.low.energy_frac << " " << truth.energy_frac << " " << of.high.energy_frac;
      }
    }
  }
  EXPECT_GE(saving, 4);
  EXPECT_GT(apart, 0.02);  // the two hosts differ, or nothing was tested
}

TEST(TwoReadings, AFileThatSaysIsReadOnce) {
  for (const GraphPlanOutcome& plan : explore_captured(input_of(run_of(Host::waits))).plans)
    EXPECT_FALSE(has_mark(plan.marks, MarkKind::two_readings));
}

}  // namespace
}  // namespace rubato
