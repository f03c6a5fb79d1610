#pragma once
// Plans whose clocks fit together, to be spliced: at most times the clocks of a stage cannot fill
// the time that the slowest stage leaves it, at some they nearly do.

#include <cstddef>
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

  /// Of plans that are made already.
  SteadyPlans(const ClockRounder& rounder, std::vector<PipelinePlan> plans);

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

/// What is rounded for a deadline. Free durations of a slightly shorter time often round better:
/// the vertices of their hulls fall on other clocks. Plans are spliced from those of times that
/// differ from the deadline by as much to either side. Found by trial on the Perseus profiles.
struct Candidates {
  std::vector<double> shorter_by, splice_by;

  [[nodiscard]] std::size_t size() const { return shorter_by.size() + 2 * splice_by.size(); }
};
[[nodiscard]] Candidates candidates_for(std::size_t passes);

/// The times whose durations are rounded for each target, shape [targets x candidates].
[[nodiscard]] std::vector<double> times_around(std::span<const double> targets_s,
                                               const Candidates& candidates);

}  // namespace rubato
