#include "explorer/graph/parallel_plan.hpp"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "explorer/graph/planner.hpp"
#include "models/gpu/clock_grid.hpp"
#include "tests/sim/capture/parallel_input.hpp"

namespace rubato {
namespace {

const char* const few_clocks = "mem=1593 core=900,1155,1410";

ParallelStepInput small_step(std::uint32_t stages, std::uint32_t microbatches) {
  ParallelStepInput input = staged_input(usual, stages, microbatches);
  input.shape.model.layers = 6;
  return input;
}

// No plan is later than its slack allows, and each is what the simulator says of it.
TEST(ParallelPlanner, PlansEndInTimeAndAreReplayed) {
  ParallelStepInput input = small_step(3, 6);
  input.shape.tensor_parallel = 2;
  input.shape.data_parallel = 2;
  ParallelPlanner planner(input, few_clocks);
  const std::array slacks{0.0, 0.01, 0.05};
  const std::vector<ParallelPlan> plans = planner.plan(slacks);
  ASSERT_EQ(plans.size(), 3U);
  GraphSimulator simulator(planner.model(), make_clock_grid(input.spec, few_clocks));
  double before = 0.0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_LE(plans[i].time_frac, slacks[i] + 1e-9);
    EXPECT_LE(plans[i].energy_frac, before);
    before = plans[i].energy_frac;
    const GraphRun run = simulator.run(plans[i].plan);
    EXPECT_NEAR(run.total_energy_j / planner.baseline().total_energy_j - 1.0, plans[i].energy_frac,
                1e-12);
    EXPECT_NEAR(run.span_s / planner.baseline().span_s - 1.0, plans[i].time_frac, 1e-12);
  }
  EXPECT_LT(plans.back().energy_frac, -0.02);
}

// Every clock for each kind of pass of each stage, tried: a plan that may choose for each pass
// alone saves about as much or more, and no less than the bound of launches allows.
TEST(ParallelPlanner, SavesWhatTryingAllClocksOfStagesFinds) {
  const ParallelStepInput input = small_step(2, 4);
  ParallelPlanner planner(input, few_clocks);
  const ClockGrid grid = make_clock_grid(input.spec, few_clocks);
  GraphSimulator simulator(planner.model(), grid);
  const ExecutionGraph& graph = planner.model().graph();
  const std::array slacks{0.02};
  const ParallelPlan found = planner.plan(slacks).front();
  double best = 0.0;
  for (std::size_t tried = 0; tried < 81; ++tried) {
    GraphPlan plan = uniform_plan(graph, grid.default_clock());
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const Activity& activity = graph.activities()[i];
      const auto gpu = graph.gpu_of(activity);
      if (!gpu || activity.kind != ActivityKind::launch) continue;
      const bool backward =
          activity.pass == Pass::backward || activity.pass == Pass::embedding_backward;
      std::size_t digits = tried;
      for (std::size_t k = 0; k < 2 * index(*gpu) + (backward ? 1U : 0U); ++k) digits /= 3;
      plan.clock_of_activity[i] = id_at<ClockId>(digits % 3);
    }
    const GraphRun run = simulator.run(plan);
    if (run.span_s > 1.02 * planner.baseline().span_s) continue;
    best = std::min(best, run.total_energy_j / planner.baseline().total_energy_j - 1.0);
  }
  EXPECT_LT(best, -0.01);
  EXPECT_LE(found.energy_frac, 0.95 * best);
  GraphPlanner launches(planner.model(), grid);
  const GraphQuestion question{Granularity::launch, 0.02};
  const GraphPlanResult bound = launches.plan(std::span(&question, 1)).front();
  EXPECT_GE((1.0 + found.energy_frac) * planner.baseline().total_energy_j,
            bound.lower_bound_j * (1.0 - 1e-9));
}

// Messages that run beside kernels are slower where these have lower clocks: plans that end late by
// it are sped up where they are, and save about what they save where stages wait for messages.
TEST(ParallelPlanner, SavesWithMessagesBesideKernelsToo) {
  ParallelStepInput input = small_step(3, 6);
  input.shape.tensor_parallel = 2;
  input.spec.cluster->inside.bus_gbs *=
      2.0;  // about half of what messages take is their bytes' time
  const std::array slacks{0.0, 0.01, 0.05};
  const auto planned = [&](bool overlap) {
    input.overlap_messages = overlap;
    ParallelPlanner planner(input, few_clocks);
    return planner.plan(slacks);
  };
  const std::vector<ParallelPlan> waiting = planned(false), beside = planned(true);
  for (std::size_t i = 0; i < slacks.size(); ++i) {
    EXPECT_LE(beside[i].time_frac, slacks[i] + 1e-9);
    EXPECT_LT(beside[i].energy_frac, 0.35 * waiting[i].energy_frac) << slacks[i];
  }
}

// One stage: nothing to wait for, so nothing to save without slack.
TEST(ParallelPlanner, OneStageHasNoBubbles) {
  ParallelPlanner planner(small_step(1, 2), few_clocks);
  const std::array slacks{0.0};
  EXPECT_NEAR(planner.plan(slacks).front().energy_frac, 0.0, 1e-12);
}

}  // namespace
}  // namespace rubato
