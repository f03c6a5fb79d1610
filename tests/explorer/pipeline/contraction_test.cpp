// A problem made smaller against itself as it was.

#include "explorer/pipeline/contraction.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/pipeline/reference.hpp"

namespace rubato {
namespace {

// Convex and falling; one vertex where nothing can be chosen.
CostCurve arbitrary_curve() {
  CostCurve curve{{*rc::gen::inRange(0, 9) * 0.5, 20.0}};
  const auto vertices = *rc::gen::weightedElement<int>({{3, 1}, {2, 2}, {2, 4}});
  if (vertices > 1) curve.front().time_s += 0.5;
  double slope_w = 16.0;
  for (int k = 1; k < vertices; ++k) {
    slope_w /= *rc::gen::inRange(2, 4);
    const double time_s = 0.5 * *rc::gen::inRange(1, 5);
    curve.push_back({curve.back().time_s + time_s, curve.back().cost_j - slope_w * time_s});
  }
  return curve;
}

// Numbered in any order; most activities follow one or two others, as in captured runs.
CrashProblem arbitrary_problem() {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 14);
  CrashProblem problem;
  std::vector<std::uint32_t> place(count);
  for (std::uint32_t a = 0; a < count; ++a) place[a] = a;
  if (*rc::gen::arbitrary<bool>()) std::ranges::reverse(place);
  for (std::uint32_t a = 0; a < count; ++a) {
    problem.curves.push_back(arbitrary_curve());
    problem.curve_of_activity.push_back(a);
    for (auto arcs = *rc::gen::inRange(0, 3); a > 0 && arcs > 0; --arcs) {
      const auto from = *rc::gen::inRange<std::uint32_t>(a > 4 ? a - 4 : 0, a);
      problem.dependencies.push_back(
          {PassId{place[from]}, PassId{place[a]}, 0.5 * *rc::gen::element(0, 0, 1, 5)});
    }
  }
  return problem;
}

double least_total_j(const CrashProblem& problem, const FrontierPlan& plan) {
  double sum_j = plan.lag_cost_j;
  for (std::size_t a = 0; a < plan.flow_w.size(); ++a) {
    double least_j = 1e300;
    for (const CurvePoint& point : problem.curves[problem.curve_of_activity[a]])
      least_j = std::min(least_j, point.cost_j + plan.flow_w[a] * point.time_s);
    sum_j += least_j;
  }
  return sum_j;
}

// Flows on the dependencies of the whole problem: what comes in goes through, and no more goes out.
void check_arc_flows(const CrashProblem& problem, const FrontierPlan& plan) {
  std::vector<double> in_w(plan.flow_w.size(), 0.0), out_w = in_w;
  std::vector<bool> waits(in_w.size(), false);
  RC_ASSERT(plan.arc_flow_w.size() == problem.dependencies.size());
  for (std::size_t d = 0; d < problem.dependencies.size(); ++d) {
    const Dependency& of = problem.dependencies[d];
    RC_ASSERT(plan.arc_flow_w[d] >= 0.0);
    in_w[index(of.to)] += plan.arc_flow_w[d];
    out_w[index(of.from)] += plan.arc_flow_w[d];
    waits[index(of.to)] = true;
  }
  const double rounding_w = 1e-9 * (1.0 + plan.price_w);
  for (std::size_t a = 0; a < in_w.size(); ++a) {
    if (!waits[a]) continue;
    RC_ASSERT(out_w[a] <= in_w[a] + rounding_w);
    RC_ASSERT(plan.flow_w[a] == 0.0 || std::abs(in_w[a] - plan.flow_w[a]) <= rounding_w);
  }
}

RC_GTEST_PROP(Contraction, HasTheFrontierOfTheWhole, ()) {
  const CrashProblem problem = arbitrary_problem();
  const Contraction contraction(problem);
  RC_ASSERT(contraction.problem().curve_of_activity.size() <= problem.curve_of_activity.size() + 2);
  const Frontier whole = sweep_frontier(problem);
  const auto near = [](double a, double b) {
    return std::abs(a - b) <= 1e-9 * (1.0 + std::abs(b));
  };
  FrontierOptions options;
  for (const double share : {0.0, 0.1, 0.4, 0.8, 1.0})
    options.times_s.push_back(whole.least_time_s +
                              share * (whole.slowest_time_s - whole.least_time_s));
  const Frontier small = contraction.expanded(sweep_frontier(contraction.problem(), options));
  RC_ASSERT(near(small.least_time_s, whole.least_time_s));
  RC_ASSERT(near(small.slowest_time_s, whole.slowest_time_s));
  RC_ASSERT(near(small.least_cost_j, whole.least_cost_j));
  for (const double time_s : options.times_s) {
    RC_ASSERT(near(cost_on(small, time_s), cost_on(whole, time_s)));
    RC_ASSERT(near(small.lower_bound_j(time_s), whole.lower_bound_j(time_s)));
  }
  for (const FrontierPlan& plan : small.plans) {
    // Times are cut to steps.
    RC_ASSERT(longest_path_s(problem, plan.duration_s) <= plan.time_s * (1.0 + 1e-9) + 1e-9);
    double cost_j = 0.0;
    for (std::size_t a = 0; a < plan.duration_s.size(); ++a)
      cost_j += cost_at(problem.curves[problem.curve_of_activity[a]], plan.duration_s[a]);
    check_arc_flows(problem, plan);
    RC_ASSERT(near(cost_j, plan.cost_j));
    RC_ASSERT(near(cost_j, cost_on(whole, plan.time_s)));
    RC_ASSERT(near(least_total_j(problem, plan) - plan.price_w * plan.time_s, plan.lower_bound_j));
  }
}

// Two launches, their calls by a host that never waits, and a copy nobody waits for.
TEST(Contraction, LeavesWhatCanMatter) {
  const CostCurve moment{{0.0, 0.0}}, launch{{2.0, 9.0}, {3.0, 5.0}}, copy{{1.0, 1.0}};
  const CrashProblem problem{{moment, moment, launch, launch, copy},
                             {0, 1, 2, 3, 4},
                             {{PassId{0}, PassId{1}, 0.5},
                              {PassId{0}, PassId{2}, 0.25},
                              {PassId{1}, PassId{3}, 0.25},
                              {PassId{2}, PassId{3}, 0.5},
                              {PassId{1}, PassId{4}, 0.0}}};
  const Contraction contraction(problem);
  // The origin, both launches and the end are in a row; calls and copy are gone.
  ASSERT_EQ(contraction.problem().curve_of_activity.size(), 1u);
  EXPECT_EQ(contraction.problem().curves[0], (CostCurve{{4.75, 18.0}, {6.75, 10.0}}));
  const Frontier frontier =
      contraction.expanded(sweep_frontier(contraction.problem(), {.times_s = {5.25}}));
  EXPECT_NEAR(frontier.plans[0].duration_s[2], 2.5, 1e-9);
  EXPECT_NEAR(frontier.plans[0].duration_s[3], 2.0, 1e-9);
  EXPECT_NEAR(frontier.plans[0].cost_j, 17.0, 1e-9);
}

// Where a sweep would take too long it is less fine: a bound all the same, and close to the cost.
RC_GTEST_PROP(LaunchFrontier, GivesBoundsWhenItGivesUpBeingExact, ()) {
  const CrashProblem problem = arbitrary_problem();
  const Frontier exact = sweep_frontier(problem);
  const double range_s = exact.slowest_time_s - exact.least_time_s;
  const double around_s = exact.least_time_s + *rc::gen::element(0.1, 0.5) * range_s;
  const double idle_w = *rc::gen::element(0.1, 1.0);
  double rounded_j = 0.0;  // savings per second are off by half a step
  for (const std::uint32_t c : problem.curve_of_activity)
    rounded_j +=
        idle_w / 64.0 * (problem.curves[c].back().time_s - problem.curves[c].front().time_s);
  for (const std::uint64_t visits : {std::uint64_t{0}, std::uint64_t{1'000'000}}) {
    const LaunchFrontier found(problem, around_s, idle_w, visits, {});
    for (const double share : {0.0, 0.1, 0.3, 0.5, 1.0}) {
      const double time_s = exact.least_time_s + share * range_s;
      const double cost_j = cost_on(exact, time_s);
      const double rounding = 1e-9 * (1.0 + std::abs(cost_j) + std::abs(exact.least_cost_j));
      const double bound_j = found.frontier().lower_bound_j(time_s);
      RC_ASSERT(bound_j <= cost_j + rounding);
      RC_ASSERT(bound_j >= cost_j - (visits == 0 ? rounded_j : 0.0) - rounding);
      const auto plan = found.plan_within(time_s);
      RC_ASSERT(plan.has_value());
      RC_ASSERT(longest_path_s(problem, plan->duration_s) <= time_s * (1.0 + 1e-9) + 1e-9);
      RC_ASSERT(least_total_j(problem, *plan) - plan->price_w * time_s <= cost_j + rounding);
    }
  }
}

TEST(Contraction, CyclesAreRefused) {
  const CrashProblem problem{
      {{{1.0, 1.0}}}, {0, 0}, {{PassId{0}, PassId{1}}, {PassId{1}, PassId{0}}}};
  expect_error<DataError>([&] { Contraction{problem}; }, "activities wait for each other");
  expect_error<DataError>([&] { Contraction{CrashProblem{}}; }, "there is no activity to plan");
}

}  // namespace
}  // namespace rubato
