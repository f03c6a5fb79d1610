#pragma once
// Prices of time for every launch, and the time-energy frontiers of launches they come from: exact,
// or to a small gap where that takes long.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/contraction.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// A price of time for every activity, a flow from first start to last end: docs/graphs.md.
struct LaunchPrices {
  std::vector<double> flow_w;  ///< shape [activities]
  double lag_cost_j = 0.0;     ///< sum of flow x lag
  double price_w = 0.0;        ///< of the whole, the value of the flow
};

[[nodiscard]] inline LaunchPrices prices_of(const FrontierPlan& plan) {
  return {plan.flow_w, plan.lag_cost_j, plan.price_w};
}

/// What the last end waits for, from activity to activity.
struct LatestPath {
  std::uint32_t last = 0;              ///< activity that ends last
  std::vector<const GraphArc*> waits;  ///< of it, of the activity it waits for, ... to the origin
};

/// @param end_s  when activities ended, shape [activities]
[[nodiscard]] LatestPath latest_path(const ExecutionGraph& graph, std::span<const double> end_s);

/// All prices by one factor: still a flow.
void scale(LaunchPrices& prices, double factor);

/// One step of prices, still a flow: more along the path that ends last where that is too late, all
/// of them less where it is in time.
/// @param end_s         when activities ended, shape [activities]
/// @param share         of the whole price, 0 to 1
/// @param least_idle_w  see LaunchCosts
void step_prices(const ExecutionGraph& graph, std::span<const double> end_s, bool late,
                 double share, double least_idle_w, LaunchPrices& prices);

/// A price of time that no frontier reaches: all of its vertices.
inline constexpr double all_prices = std::numeric_limits<double>::infinity();

/// Frontiers of graphs. What a plan is does not depend on which others are wanted beside it.
class LaunchFrontiers {
 public:
  /// @param most_exact_visits  of nodes, before a sweep is begun again less finely: a tenth of a
  ///                           second or so
  explicit LaunchFrontiers(std::uint64_t most_exact_visits = 1'000'000)
      : most_exact_visits_(most_exact_visits) {}

  /// Exact as far as is soon done. For what is faster, savings per second are told apart to 2^-20
  /// of the greatest, and so is the price of time; bounds stay bounds, and the gap shows what it
  /// costs (docs/graphs.md, section 5). Of large graphs curves lose those vertices that change no
  /// cost by more than a ten-thousandth of what a launch can save.
  /// @param times_s   at which plans are wanted, see FrontierOptions
  /// @param enough_w  vertices that are faster than all of times_s are wanted up to the first at
  ///                  this price of time or above
  [[nodiscard]] Frontier sweep(const Contraction& launches, std::vector<double> times_s,
                               double enough_w, const RunContext& context) const;

 private:
  std::uint64_t most_exact_visits_;
};

/// Frontier plans for deadlines, and for somewhat less time each, swept for when the first of them
/// is asked for. Those for much less are swept for later: most of a sweep's time goes into the
/// fastest plans.
class ShorterPlans {
 public:
  /// @param shorter  shares by which plans end before their deadline, rising; must outlive this
  ShorterPlans(const CrashProblem& problem, std::span<const double> shorter)
      : launches_(problem), shorter_(shorter) {}

  /// One more deadline, swept for with those given and not swept for yet.
  void add(double deadline_s);

  /// @param deadline_s  one of those given
  /// @param share       position in `shorter`
  /// @return null if it was interrupted
  [[nodiscard]] const FrontierPlan* at(double deadline_s, std::size_t share,
                                       const RunContext& context);

 private:
  // Prices choose clocks, bounds rest on others: seldom exact, so that little is swept for nothing.
  LaunchFrontiers sweeps_{100'000};
  Contraction launches_;
  std::span<const double> shorter_;
  std::set<double> deadlines_s_;
  std::map<double, FrontierPlan> plans_;  // by time
};

/// No launches that end by a time cost less together, idle power included.
/// @param frontier      of launches alone
/// @param least_idle_w  see LaunchCosts
[[nodiscard]] double bound_of_launches_j(const Frontier& frontier, double least_idle_w,
                                         double time_s);

}  // namespace rubato
