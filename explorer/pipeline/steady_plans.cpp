#include "explorer/pipeline/steady_plans.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "explorer/pipeline/cost_curve.hpp"

namespace rubato {

namespace {

// How many times, found by trial on the Perseus profiles: twice as many find little more.
constexpr std::size_t steady_times = 96, steady_times_of_many = 24, many_activities = 8192;

std::vector<double> steady_times_s(const CrashProblem& problem) {
  std::vector<double> fastest_s, slowest_s;
  for (const std::uint32_t curve : problem.curve_of_activity) {
    fastest_s.push_back(problem.curves[curve].front().time_s);
    slowest_s.push_back(problem.curves[curve].back().time_s);
  }
  const double least_s = longest_path_s(problem, fastest_s);
  const double most_s = longest_path_s(problem, slowest_s);
  const std::size_t count =
      fastest_s.size() > many_activities ? steady_times_of_many : steady_times;
  std::vector<double> times_s;
  for (std::size_t i = 0; i < count; ++i)
    times_s.push_back(
        std::lerp(least_s, most_s, static_cast<double>(i) / static_cast<double>(count - 1)));
  return times_s;
}

}  // namespace

SteadyPlans::SteadyPlans(const ClockRounder& rounder, std::span<const FrontierPlan> durations) {
  std::vector<Point> points;
  for (const FrontierPlan& at : durations) {
    PipelinePlan plan = rounder.rounded_down(at.duration_s);
    const double time_s = rounder.time_s(plan), cost_j = rounder.cost_j(plan);
    points.push_back({time_s, cost_j, std::move(plan)});
  }
  std::ranges::stable_sort(points, {},
                           [](const Point& p) { return std::pair(p.time_s, p.cost_j); });
  for (Point& point : points) {
    if (!hull_.empty() && point.cost_j >= hull_.back().cost_j) continue;
    extend_hull(hull_, std::move(point));
  }
}

std::vector<PipelinePlan> SteadyPlans::ending_by(const ClockRounder& rounder,
                                                 double deadline_s) const {
  const auto slower = std::ranges::upper_bound(hull_, deadline_s, {}, &Point::time_s);
  std::vector<PipelinePlan> plans;
  if (slower == hull_.begin()) return plans;
  const Point& fast = *std::prev(slower);
  const Point& slow = slower == hull_.end() ? fast : *slower;
  for (const SlowPart part :
       {SlowPart::begin, SlowPart::end, SlowPart::both_ends, SlowPart::middle}) {
    if (auto plan = rounder.splice(slow.plan, fast.plan, deadline_s, part))
      plans.push_back(std::move(*plan));
  }
  return plans;
}

std::vector<double> with_steady_times(std::vector<double> times_s, const CrashProblem& problem,
                                      const PipelineShape& shape) {
  if (shape.microbatches <= shape.stages) return times_s;
  const std::vector<double> steady_s = steady_times_s(problem);
  times_s.insert(times_s.end(), steady_s.begin(), steady_s.end());
  return times_s;
}

Candidates candidates_for(std::size_t passes) {
  if (passes > many_activities) return {{0.0, 1e-3}, {4e-3}};
  return {{0.0, 3e-4, 6e-4, 1e-3, 1.5e-3, 2e-3}, {2e-3, 4e-3, 8e-3, 1.6e-2}};
}

std::vector<double> times_around(std::span<const double> targets_s, const Candidates& candidates) {
  std::vector<double> times_s;
  for (const double target_s : targets_s) {
    for (const double share : candidates.shorter_by) times_s.push_back(target_s * (1 - share));
    for (const double share : candidates.splice_by) {
      times_s.push_back(target_s * (1 + share));
      times_s.push_back(target_s * (1 - share));
    }
  }
  return times_s;
}

}  // namespace rubato
