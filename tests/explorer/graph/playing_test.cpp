#include "explorer/graph/playing.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/made_exploration.hpp"
#include "tests/paths.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

constexpr ClockId low{1}, high{2};

TEST(StepScore, FindsPassesByNameAndNumber) {
  const StepScore score(std::vector<StepStretch>{{"forward", high, 1.0},
                                                 {"forward", low, 3.0},
                                                 {"backward", low, 2.0},
                                                 {"forward", low, 5.0}});
  const auto first = score.find("forward", 0);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].clock, high);
  EXPECT_DOUBLE_EQ(first[0].at_frac, 0.0);
  EXPECT_EQ(first[1].clock, low);
  EXPECT_DOUBLE_EQ(first[1].at_frac, 0.25);
  EXPECT_EQ(score.find("forward", 1).size(), 1U);
  EXPECT_EQ(score.find("forward", 7).data(), score.find("forward", 1).data());
  EXPECT_TRUE(score.find("optimizer", 0).empty());
}

TEST(StepScore, IsOfTheMiddleStep) {
  const auto segment = [](std::uint32_t gpu, std::optional<std::uint32_t> step, double time_s) {
    return PlanSegment{.gpu = GpuId{gpu},
                       .step = step,
                       .pass = Pass::forward,
                       .clock = low,
                       .time_s = time_s,
                       .first_kernel = {}};
  };
  const std::vector<PlanSegment> segments{segment(0, {}, 1.0), segment(0, 3, 2.0),
                                          segment(0, 5, 3.0), segment(0, 9, 4.0),
                                          segment(1, {}, 5.0)};
  const std::vector<StepStretch> first = played_step(segments, GpuId{0});
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].pass, "forward");
  EXPECT_DOUBLE_EQ(first[0].time_s, 3.0);
  const std::vector<StepStretch> second = played_step(segments, GpuId{1});
  ASSERT_EQ(second.size(), 1U);
  EXPECT_DOUBLE_EQ(second[0].time_s, 5.0);
}

// Steps that differ by a tenth: what one step's clocks give in all is what counts.
TEST(Playing, AutomaticPlansKeepTheirDeadlineInAllSteps) {
  constexpr double rounding = 1e-9;
  std::uint64_t state = 7;
  const auto vary = [&](std::int64_t ns) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return ns + ns * static_cast<std::int64_t>(state >> 40U) / (10 << 24);
  };
  SwitchModel switching;
  switching.core.lead_s = 3e-4;
  GraphExplorationInput input = made_exploration_input({}, {}, switching);
  input.captures = {made_step({.steps = 5, .layers = 12, .launches_per_layer = 6}, vary)};
  for (const double slack : {0.0, 0.01, 0.03, 0.1}) {
    input.questions.push_back({Granularity::run, Aggregation::global, LeastWaste{slack}});
    input.questions.push_back({Granularity::segment, Aggregation::global, LeastWaste{slack}});
  }
  const GraphExploration found = explore_captured(input);
  std::uint64_t changes = 0;
  for (std::size_t i = 0; i < found.plans.size(); i += 2) {
    const GraphPlanOutcome &one_clock = found.plans[i], &automatic = found.plans[i + 1];
    ASSERT_TRUE(one_clock.counted && automatic.counted);
    EXPECT_TRUE(automatic.counted->in_time);
    EXPECT_LE(automatic.counted->change.time_frac, automatic.result.question.slack_frac + rounding);
    EXPECT_LE(automatic.counted->change.energy_frac,
              one_clock.counted->change.energy_frac + rounding);
    EXPECT_EQ(automatic.result.question.grain, Granularity::segment);
    EXPECT_GE(automatic.result.gap_frac, 0.0);
    changes += automatic.counted->clock_changes;
  }
  EXPECT_GT(changes, 0U);
}

// A start cut into stretches of one clock has no more passes than one that is not.
TEST(Playing, LearnsFromPassesWhateverTheStartKept) {
  GraphExplorationInput input = made_exploration_input({}, {{Granularity::launch, 0.05}});
  input.captures = {made_step({.steps = 3, .layers = 6, .launches_per_layer = 6},
                              [](std::int64_t ns) { return ns; })};
  const GraphExploration found = explore_captured(input);
  const GraphPlanResult& plan = found.plans.at(0).result;
  GraphSimulator simulator(*found.model, found.planner->grid());
  const GraphRun cut = simulator.run(plan.plan, {.phases = true}), whole = simulator.run(plan.plan);
  const std::vector<PlanSegment> segments = plan_segments(*found.model, cut);
  ASSERT_GT(segments.size(), plan_segments(*found.model, whole).size());
  const std::vector<StepScore> scores{StepScore(played_step(segments, GpuId{0}))};
  const ClockId other = found.planner->grid().default_clock();
  const PlayedRun a = play(*found.model, simulator, scores, other, {}, cut),
                  b = play(*found.model, simulator, scores, other, {}, whole);
  EXPECT_EQ(a.run.end_s, b.run.end_s);
  EXPECT_EQ(a.run.total_energy_j, b.run.total_energy_j);
  EXPECT_EQ(a.run.gpus[0].clock_changes, b.run.gpus[0].clock_changes);
}

// The example of the documents: steps that differ. One clock saves nothing in so little time, and
// plans just short of it are late as played.
TEST(Playing, LittleTimeIsUsed) {
  GraphExplorationInput input = made_exploration_input(
      {}, {{Granularity::run, 0.005}, {Granularity::segment, 0.005}}, SwitchModel{});
  input.captures = {import_capture(source_dir() / "docs/examples/run.pt.trace.json.gz")};
  input.spec = load_gpu_spec("a100-sxm4-80gb");
  input.captured_clock = input.spec.default_clock;
  input.grid = input.spec.grids.front().name;
  for (const double lead_s : {4e-3, 22e-3}) {
    input.switching->core.lead_s = lead_s;
    const GraphExploration found = explore_captured(input);
    const GraphPlanOutcome &one_clock = found.plans[0], &automatic = found.plans[1];
    ASSERT_TRUE(one_clock.counted && automatic.counted);
    EXPECT_TRUE(automatic.counted->in_time) << lead_s;
    EXPECT_LT(automatic.counted->change.energy_frac, one_clock.counted->change.energy_frac - 0.01)
        << lead_s;
  }
}

}  // namespace
}  // namespace rubato
