// The frontier against its definition.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/pipeline/reference.hpp"
#include "tests/small_pipeline.hpp"

namespace rubato {
namespace {

TEST(CostCurve, KeepsTheLowerHull) {
  const std::vector<CurvePoint> points{{3, 5}, {1, 10}, {2, 9}, {2, 6}, {4, 5}, {5, 7}, {1, 12}};
  EXPECT_EQ(lower_hull(points), (CostCurve{{1, 10}, {2, 6}, {3, 5}}));
  EXPECT_EQ(lower_hull(std::vector<CurvePoint>{{2, 1}}), (CostCurve{{2, 1}}));
  EXPECT_EQ(cost_at({{1, 10}, {3, 6}}, 2.0), 8.0);
}

std::vector<double> fastest_durations(const CrashProblem& problem) {
  std::vector<double> fastest_s;
  for (const std::uint32_t curve : problem.curve_of_activity)
    fastest_s.push_back(problem.curves[curve].front().time_s);
  return fastest_s;
}

// Passes one after the other: the frontier is the sum of the hulls, steepest parts first.
TEST(Frontier, OfAChainIsTheSumOfItsHulls) {
  const CrashProblem problem{
      {{{1, 10}, {2, 4}, {4, 2}}, {{1, 9}, {4, 3}}}, {0, 1}, {{PassId{0}, PassId{1}, 0.5}}};
  const Frontier frontier = sweep_frontier(problem, {.times_s = {3.5}});
  ASSERT_EQ(frontier.vertices.size(), 4U);
  EXPECT_DOUBLE_EQ(frontier.slowest_time_s, 8.5);
  EXPECT_DOUBLE_EQ(frontier.least_time_s, 2.5);
  const double expected[][3] = {{8.5, 5, 1}, {6.5, 7, 2}, {3.5, 13, 6}, {2.5, 19, 6}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(frontier.vertices[i].time_s, expected[i][0], 1e-9);
    EXPECT_NEAR(frontier.vertices[i].cost_j, expected[i][1], 1e-9);
    EXPECT_NEAR(frontier.vertices[i].price_w, expected[i][2], 1e-9);
  }
  EXPECT_NEAR(frontier.plans.front().duration_s[0], 2.0, 1e-9);
  EXPECT_NEAR(frontier.plans.front().duration_s[1], 1.0, 1e-9);
}

// Convex, falling, equal to its own dual bound, and plans keep the time and cost they claim.
RC_GTEST_PROP(Frontier, IsConvexAndProven, ()) {
  const PipelineWork work = arbitrary_work(*rc::gen::inRange<std::uint32_t>(1, 5),
                                           *rc::gen::inRange<std::uint32_t>(1, 6), 6);
  const CrashProblem problem = crash_problem(work);
  Frontier frontier = sweep_frontier(problem);
  FrontierOptions options;
  for (const double share : {0.0, 0.2, 0.5, 0.9}) {
    options.times_s.push_back(frontier.least_time_s +
                              share * (frontier.slowest_time_s - frontier.least_time_s));
  }
  frontier = sweep_frontier(problem, options);
  for (std::size_t i = 0; i < frontier.vertices.size(); ++i) {
    const FrontierVertex& v = frontier.vertices[i];
    RC_ASSERT(std::abs(v.cost_j - v.lower_bound_j) <= 1e-9 * (1.0 + std::abs(v.cost_j)));
    if (i == 0) continue;
    RC_ASSERT(v.time_s < frontier.vertices[i - 1].time_s);
    RC_ASSERT(v.cost_j > frontier.vertices[i - 1].cost_j);
    RC_ASSERT(v.price_w >= frontier.vertices[i - 1].price_w);
  }
  for (const FrontierPlan& plan : frontier.plans) {
    RC_ASSERT(longest_path_s(problem, plan.duration_s) <= plan.time_s * (1.0 + 1e-9));
    double cost_j = 0.0;
    for (std::size_t a = 0; a < plan.duration_s.size(); ++a) {
      cost_j += cost_at(problem.curves[problem.curve_of_activity[a]], plan.duration_s[a]);
    }
    RC_ASSERT(std::abs(cost_j - plan.lower_bound_j) <= 1e-6 * (1.0 + std::abs(cost_j)));
  }
}

// Long enough that searches go back to where they would part: durations that no
// longer fit the flow would cost more than the bound says, or end late.
RC_GTEST_PROP(Frontier, OfLongPipelinesIsProven, ()) {
  const PipelineWork work = arbitrary_work(*rc::gen::inRange<std::uint32_t>(4, 9),
                                           *rc::gen::inRange<std::uint32_t>(8, 25), 6);
  const CrashProblem problem = crash_problem(work);
  FrontierOptions options;
  options.times_s = {longest_path_s(problem, fastest_durations(problem)) * 1.02};
  const Frontier frontier = sweep_frontier(problem, options);
  for (const FrontierVertex& v : frontier.vertices)
    RC_ASSERT(std::abs(v.cost_j - v.lower_bound_j) <= 1e-9 * (1.0 + std::abs(v.cost_j)));
  const FrontierPlan& plan = frontier.plans.front();
  RC_ASSERT(longest_path_s(problem, plan.duration_s) <= plan.time_s * (1.0 + 1e-9));
}

// Energies in MJ or uJ, times in ms: the same vertices in other units.
RC_GTEST_PROP(Frontier, DoesNotDependOnUnits, ()) {
  const PipelineWork work = arbitrary_work(3, 4, 6);
  const double energy_scale = *rc::gen::element(1e-6, 1e6);
  const double time_scale = *rc::gen::element(1e-3, 1e3);
  CrashProblem scaled = crash_problem(work);
  const Frontier here = sweep_frontier(scaled);
  for (CostCurve& curve : scaled.curves) {
    for (CurvePoint& point : curve) {
      point.time_s *= time_scale;
      point.cost_j *= energy_scale;
    }
  }
  for (Dependency& dependency : scaled.dependencies) dependency.lag_s *= time_scale;
  const Frontier there = sweep_frontier(scaled);
  RC_ASSERT(there.vertices.size() == here.vertices.size());
  for (std::size_t i = 0; i < here.vertices.size(); ++i) {
    const FrontierVertex& a = here.vertices[i];
    const FrontierVertex& b = there.vertices[i];
    RC_ASSERT(std::abs(b.time_s / time_scale - a.time_s) <= 1e-9 * a.time_s);
    RC_ASSERT(std::abs(b.cost_j / energy_scale - a.cost_j) <= 1e-9 * (1.0 + std::abs(a.cost_j)));
  }
}

// Coarse slopes: never below the exact frontier, bounds never above it.
RC_GTEST_PROP(Frontier, CoarseSlopesKeepTheirBound, ()) {
  const CrashProblem problem = crash_problem(arbitrary_work(3, 4, 6));
  const Frontier exact = sweep_frontier(problem);
  const Frontier coarse = sweep_frontier(problem, {.slope_bits = 3, .curve_error = 0.1});
  for (const FrontierVertex& v : exact.vertices) {
    const double tolerance = 1e-9 * (1.0 + std::abs(v.cost_j));
    RC_ASSERT(cost_on(coarse, v.time_s) >= v.cost_j - tolerance);
    RC_ASSERT(coarse.lower_bound_j(v.time_s) <= v.cost_j + tolerance);
  }
}

TEST(Frontier, OfOptionsWithoutAChoiceIsOnePoint) {
  const Frontier frontier = sweep_frontier({{{{2, 3}}}, {0, 0}, {{PassId{0}, PassId{1}, 0.0}}});
  ASSERT_EQ(frontier.vertices.size(), 1U);
  EXPECT_DOUBLE_EQ(frontier.vertices.front().time_s, 4.0);
  EXPECT_DOUBLE_EQ(frontier.vertices.front().cost_j, 6.0);
}

TEST(Frontier, RejectsWhatIsNoProblem) {
  expect_error<DataError>([] { (void)sweep_frontier({}); }, "there is no activity to plan");
  expect_error<DataError>([] { (void)sweep_frontier({{}, {0}, {}}); }, "activity with curve 0");
}

}  // namespace
}  // namespace rubato
