#include "explorer/graph/plan_segments.hpp"

#include <map>

#include <gtest/gtest.h>

#include "tests/made_exploration.hpp"

namespace rubato {
namespace {

class PlanSegments : public ::testing::Test {
 protected:
  PlanSegments()
      : found_(explore_captured(made_exploration_input(
            {.layers = 4},
            {{Granularity::run, 0.02}, {Granularity::pass, 0.02}, {Granularity::launch, 0.02}}))) {}

  [[nodiscard]] std::vector<PlanSegment> of(const GraphPlanResult& plan) const {
    GraphSimulator simulator(*found_.model, found_.planner->grid());
    return plan_segments(*found_.model, simulator.run(plan.plan, {.phases = true}));
  }
  [[nodiscard]] const ExecutionGraph& graph() const { return found_.run->graph; }

  GraphExploration found_;
};

TEST_F(PlanSegments, HoldEveryLaunchAndAllTheTime) {
  for (const GraphPlanOutcome& outcome : found_.plans) {
    const GraphPlanResult& plan = outcome.result;
    ASSERT_TRUE(plan.found());
    std::uint64_t launches = 0, segments = 0;
    double energy_j = 0.0, expected_j = 0.0;
    for (std::size_t i = 0; i < graph().size(); ++i) {
      if (found_.model->work()[i] <= 0.0) continue;
      ++launches;
      expected_j += plan.run.energy_j[i];
    }
    const std::vector<PlanSegment> found = of(plan);
    ASSERT_FALSE(found.empty());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double end_s = i + 1 < found.size() ? found[i + 1].start_s : plan.run.span_s;
      EXPECT_NEAR(found[i].start_s + found[i].time_s, end_s, 1e-12);
      segments += found[i].launches;
      energy_j += found[i].energy_j;
    }
    EXPECT_EQ(segments, launches);
    EXPECT_NEAR(energy_j, expected_j, 1e-9 * expected_j);
  }
}

// Changes are free: a launch that leads has the clock it asked for.
TEST_F(PlanSegments, LaunchesOfTheMainStreamFindTheirClockAndPass) {
  const std::uint32_t main = main_streams(graph()).front();
  for (const GraphPlanOutcome& outcome : found_.plans) {
    const GraphPlanResult& plan = outcome.result;
    const std::vector<PlanSegment> found = of(plan);
    for (std::size_t i = 0; i < graph().size(); ++i) {
      const Activity& activity = graph().activities()[i];
      if (found_.model->work()[i] <= 0.0 || activity.stream != main) continue;
      const auto after =
          std::ranges::upper_bound(found, plan.run.start_s[i], {}, &PlanSegment::start_s);
      ASSERT_NE(after, found.begin());
      const PlanSegment& own = *std::prev(after);
      EXPECT_EQ(own.clock, plan.plan.clock_of_activity[i]);
      if (activity.pass != Pass::unknown) {
        EXPECT_EQ(own.pass, activity.pass);
      }
    }
  }
}

// The clocks of a run that was replayed without its phases are not known.
TEST_F(PlanSegments, WithoutPhasesAreThePasses) {
  const GraphPlanResult& fine = found_.plans[2].result;
  const std::vector<PlanSegment> passes = plan_segments(*found_.model, fine.run);
  const std::vector<PlanSegment> coarse = of(found_.plans[1].result);
  ASSERT_EQ(passes.size(), coarse.size());
  for (std::size_t i = 0; i < passes.size(); ++i) {
    EXPECT_EQ(passes[i].pass, coarse[i].pass);
    EXPECT_EQ(passes[i].launches, coarse[i].launches);
  }
}

TEST_F(PlanSegments, ACoarsePlanHasFewAndAFineOneNamesTheLaunchThatBeginsThem) {
  const std::vector<PlanSegment> coarse = of(found_.plans[0].result);
  std::map<Pass, int> passes;
  for (const PlanSegment& segment : coarse) ++passes[segment.pass];
  EXPECT_EQ(coarse.size(), passes.size());  // one step: each pass once
  EXPECT_EQ(of(found_.plans[1].result).size(), passes.size());

  const GraphPlanResult& fine = found_.plans[2].result;
  const std::vector<PlanSegment> found = of(fine);
  ASSERT_GT(found.size(), passes.size());
  for (const PlanSegment& segment : found) {
    // The launches of that kernel in the pass, in order of time.
    std::vector<double> starts;
    for (std::size_t i = 0; i < graph().size(); ++i) {
      const Activity& activity = graph().activities()[i];
      if (found_.model->work()[i] > 0.0 && activity.kernel == segment.first_kernel &&
          activity.pass == segment.pass)
        starts.push_back(fine.run.start_s[i]);
    }
    std::ranges::sort(starts);
    ASSERT_LT(segment.first_index, starts.size());
    const double start_s = starts[segment.first_index];
    EXPECT_GE(start_s, segment.start_s);
    EXPECT_LT(start_s, segment.start_s + segment.time_s);
  }
}

}  // namespace
}  // namespace rubato
