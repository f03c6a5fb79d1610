#pragma once
// The time-energy frontier of one iteration, a Pareto front: for every iteration time the least
// cost of all passes, if each may take any duration on the lower convex hull of its options. The
// problem is known as project crashing, or time-cost trade-off.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/cost_curve.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// An activity graph with a cost curve per activity.
struct CrashProblem {
  std::vector<CostCurve> curves;
  std::vector<std::uint32_t> curve_of_activity;
  std::vector<Dependency> dependencies;
};

/// The problem of a pipeline. The curve of a pass is the hull of its type's options in time and
/// cost (energy minus blocked power x time).
[[nodiscard]] CrashProblem crash_problem(const PipelineWork& work);

/// A vertex of the frontier.
struct FrontierVertex {
  double time_s = 0.0;
  double cost_j = 0.0;         ///< of all activities at the durations found
  double lower_bound_j = 0.0;  ///< no durations on the hulls cost less at this time
  double price_w = 0.0;        ///< cost that one more second saves: slope to the next slower vertex
};

/// Durations at an iteration time asked for.
struct FrontierPlan {
  double time_s = 0.0;  ///< as asked for, at most the slowest useful time
  double cost_j = 0.0;
  double lower_bound_j = 0.0;
  double price_w = 0.0;
  std::vector<double> duration_s;  ///< shape [activities]
  /// Lagrange multiplier of each activity's duration, W, shape [activities]. Together they are a
  /// flow of value price_w from the first start to the last end. Sum over the activities of the
  /// least (cost + flow x duration), + lag_cost_j - price_w x T, is a lower bound on the cost at
  /// any iteration time T.
  std::vector<double> flow_w = {};
  double lag_cost_j = 0.0;              ///< sum of flow x lag over the dependencies
  std::vector<double> arc_flow_w = {};  ///< the flow on dependencies, W, shape [dependencies]
};

/// A lower bound that is a line over time: cost + price_w x time of every plan is at least least_j.
struct PriceLine {
  double least_j = 0.0;
  double price_w = 0.0;
};

/// How finely costs are told apart, and what is wanted beside the vertices.
struct FrontierOptions {
  /// Savings per second are integers up to 2^slope_bits. At 45 bits the frontier is exact up to
  /// rounding. With few bits neighbouring slopes merge, and a large pipeline is swept in a tenth of
  /// the time. What that costs is cost_j - lower_bound_j.
  int slope_bits = 45;
  double least_step_w = 0.0;  ///< no savings per second are told apart that differ by less
  /// Vertices of curves are left out as far as that changes no cost of a pass by more than this
  /// share of what the pass can save.
  double curve_error = 0.0;
  /// Times at which durations are wanted, any order, each >= the least time.
  std::vector<double> times_s = {};
  /// The sweep ends with the shortest of times_s. Faster vertices are missing then.
  bool only_times = false;
  /// Gives up after so many visits of nodes; a visit takes some 10 ns.
  std::uint64_t most_node_visits = std::numeric_limits<std::uint64_t>::max();
};

/// Exact for up to 2048 activities. Beyond, slopes have 8 bits and curves an error of 1 %; beyond
/// 8192 activities 7 bits and 1.5 %. Together these cost at most some tenths of a percent of the
/// energy on the Perseus profiles.
[[nodiscard]] FrontierOptions automatic_sweep(std::size_t activities);

/// The frontier, slowest vertex first.
struct Frontier {
  double least_time_s = 0.0;    ///< every activity at its fastest
  double slowest_time_s = 0.0;  ///< every activity at its least cost
  double least_cost_j = 0.0;    ///< no iteration time has a lower cost
  std::vector<FrontierVertex> vertices;
  std::vector<FrontierPlan> plans;  ///< in the order of FrontierOptions::times_s
  std::uint64_t phases = 0;         ///< falls of the horizon
  std::uint64_t augmentations = 0;
  std::uint64_t node_visits = 0;
  bool interrupted = false;
  bool gave_up = false;  ///< at most_node_visits: faster vertices and plans are missing

  /// The highest lower bound at a time: each vertex gives a line by its price.
  [[nodiscard]] double lower_bound_j(double time_s) const;
};

/// Sweeps the iteration time from the slowest useful one down to the least. Times are multiples of
/// 2^-40 of the longest activity or lag; those asked for are rounded down. Savings per second have
/// slope_bits. Nothing else is discrete. Both have fewer bits where sums over the activities and
/// dependencies would not fit into 60: from a million of them on for times, from 32,768 on for
/// savings of 45 bits.
/// @param problem  without cycles
/// @throws DataError if the graph is empty or an activity has no curve
[[nodiscard]] Frontier sweep_frontier(const CrashProblem& problem,
                                      const FrontierOptions& options = {},
                                      const RunContext& context = {});

}  // namespace rubato
