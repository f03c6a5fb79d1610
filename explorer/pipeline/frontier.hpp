#pragma once
// The time-energy frontier of one iteration: least cost of all passes for every
// iteration time, durations free on the hulls of the options.

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

/// The problem of a pipeline: hull of each pass type, energy minus blocked power.
[[nodiscard]] CrashProblem crash_problem(const PipelineWork& work);

/// A vertex of the frontier.
struct FrontierVertex {
  double time_s = 0.0;
  double cost_j = 0.0;         ///< of all activities at the durations found
  double lower_bound_j = 0.0;  ///< no durations on the hulls cost less at this time
  double price_w = 0.0;        ///< cost saved per second more: slope to the next slower vertex
};

/// Durations at an iteration time asked for.
struct FrontierPlan {
  double time_s = 0.0;  ///< as asked for, at most the slowest useful time
  double cost_j = 0.0;
  double lower_bound_j = 0.0;
  double price_w = 0.0;
  std::vector<double> duration_s;  ///< shape [activities]
  /// Multiplier of each activity's duration, W: with price_w a flow from first start to last end,
  /// so that sum of least (cost + flow x time) + lag_cost_j - price_w x time bounds every time's
  /// cost. Shape [activities].
  std::vector<double> flow_w = {};
  double lag_cost_j = 0.0;              ///< sum of flow x lag over the dependencies
  std::vector<double> arc_flow_w = {};  ///< the flow on dependencies, W, shape [dependencies]
};

/// cost + price_w x time of every plan is at least least_j.
struct PriceLine {
  double least_j = 0.0;
  double price_w = 0.0;
};

/// How finely costs are told apart, and what is wanted beside the vertices.
struct FrontierOptions {
  /// Savings per second are integers up to 2^slope_bits. At 45 the frontier is exact to rounding.
  /// With few bits neighbouring slopes merge, a large pipeline is swept in a tenth of the time, and
  /// cost_j - lower_bound_j says what that costs.
  int slope_bits = 45;
  /// Vertices of curves are left out while that changes no cost by more than this share of what a
  /// pass can save.
  double curve_error = 0.0;
  /// Times at which durations are wanted, any order, each >= the least time.
  std::vector<double> times_s = {};
  /// Ends with the shortest of times_s, and not before the price of time is at least enough_w: the
  /// vertices below are missing.
  bool only_times = false;
  double enough_w = 0.0;
  /// Gives up after as many visits of nodes; a visit takes some 10 ns.
  std::uint64_t most_node_visits = std::numeric_limits<std::uint64_t>::max();
};

/// Exact for up to 2048 activities, coarse beyond: 8 bits and an error of 1 %, beyond 8192 7 bits
/// and 1.5 %. Together they cost at most some tenths of a percent of the energy on the Perseus
/// profiles.
[[nodiscard]] FrontierOptions automatic_sweep(std::size_t activities);

/// The frontier, slowest vertex first.
struct Frontier {
  double least_time_s = 0.0;    ///< every activity at its fastest
  double slowest_time_s = 0.0;  ///< every activity at its least cost
  double least_cost_j = 0.0;    ///< no time is cheaper
  std::vector<FrontierVertex> vertices;
  std::vector<FrontierPlan> plans;  ///< in the order of FrontierOptions::times_s
  std::uint64_t phases = 0;         ///< falls of the horizon
  std::uint64_t augmentations = 0;
  std::uint64_t node_visits = 0;
  bool interrupted = false;
  bool gave_up = false;  ///< most_node_visits: what is faster is missing

  /// Highest lower bound that the vertices' prices give at a time.
  [[nodiscard]] double lower_bound_j(double time_s) const;

  /// Cost on the line between the vertices around a time.
  [[nodiscard]] double cost_j(double time_s) const;
};

/// Sweeps the horizon from the slowest useful time to the least one. Times are cut into
/// 2^40 steps of the longest activity and rounded down for plans; nothing else is discrete.
/// @throws DataError if the graph is empty or an activity has no curve
[[nodiscard]] Frontier sweep_frontier(const CrashProblem& problem,
                                      const FrontierOptions& options = {},
                                      const RunContext& context = {});

/// Longest path through the graph.
/// @param duration_s  shape [activities]
[[nodiscard]] double longest_path_s(const CrashProblem& problem,
                                    std::span<const double> duration_s);

}  // namespace rubato
