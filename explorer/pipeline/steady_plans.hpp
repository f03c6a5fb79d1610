#pragma once
// Plans whose clocks fit together, to be spliced. At most iteration times the clocks of a stage
// cannot fill the time that the slowest stage leaves it in the steady state. At some times they
// nearly do.

#include <cstddef>
#include <span>
#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"

namespace rubato {

/// Rounded plans of many iteration times: those on the lower convex hull of time and cost.
class SteadyPlans {
 public:
  SteadyPlans() = default;

  /// Rounds free durations down (ClockRounder::rounded_down).
  /// @param durations  of a sweep, at any times
  SteadyPlans(const ClockRounder& rounder, std::span<const FrontierPlan> durations);

  /// Splices of the two plans around the deadline that end by it, their slack spent. Empty if no
  /// plan is as fast.
  [[nodiscard]] std::vector<PipelinePlan> ending_by(const ClockRounder& rounder,
                                                    double deadline_s) const;

 private:
  struct Point {
    double time_s = 0.0, cost_j = 0.0;
    PipelinePlan plan;
  };
  std::vector<Point> hull_;  // times rise, costs fall
};

/// Iteration times for SteadyPlans behind others: evenly spread from the fastest to the slowest
/// useful one, 96, beyond 8192 activities 24. None of a pipeline that has hardly filled when it
/// begins to empty: it has no steady state to splice plans of.
[[nodiscard]] std::vector<double> with_steady_times(std::vector<double> times_s,
                                                    const CrashProblem& problem,
                                                    const PipelineShape& shape);

/// What is rounded for a deadline, as shares of it. Free durations for a slightly shorter time
/// often round better: they fall on other clocks. Plans are spliced from two times that differ from
/// the deadline by the same share to either side. All shares were found by trial on the Perseus
/// profiles.
struct Candidates {
  std::vector<double> shorter_by, splice_by;

  [[nodiscard]] std::size_t size() const { return shorter_by.size() + 2 * splice_by.size(); }
};
/// Fewer beyond 8192 passes.
[[nodiscard]] Candidates candidates_for(std::size_t passes);

/// The times whose durations are rounded for each target, shape [targets x Candidates::size()]:
/// first the shorter ones, then for each splice the slower and the faster one.
[[nodiscard]] std::vector<double> times_around(std::span<const double> targets_s,
                                               const Candidates& candidates);

}  // namespace rubato
