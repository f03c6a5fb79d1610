#pragma once
// Plans whose clocks fit together, to be spliced: at most times the clocks of a stage cannot fill
// the time that the slowest stage leaves it, at some they nearly do.

#include <span>
#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"

namespace rubato {

/// Rounded plans of many times, those on the lower convex hull of time and cost.
class SteadyPlans {
 public:
  SteadyPlans() = default;

  /// @param durations  of a sweep, any times
  SteadyPlans(const ClockRounder& rounder, std::span<const FrontierPlan> durations);

  /// Splices of plans around a time that end by it, their slack spent. Empty if none is as fast.
  [[nodiscard]] std::vector<PipelinePlan> ending_by(const ClockRounder& rounder,
                                                    double deadline_s) const;

 private:
  struct Point {
    double time_s = 0.0, cost_j = 0.0;
    PipelinePlan plan;
  };
  std::vector<Point> hull_;  // times rise, costs fall
};

/// Times between the fastest and the slowest useful plan at which SteadyPlans should be tried.
[[nodiscard]] std::vector<double> steady_times_s(const CrashProblem& problem);

}  // namespace rubato
