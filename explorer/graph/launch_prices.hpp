#pragma once
// Prices of time for every launch (Lagrange multipliers, shadow prices), and the time-energy
// frontiers of launches that they come from. Frontiers are exact, or, where that takes long, exact
// to a small gap.

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

/// A price of time for every activity: joules that the whole run saves for each second that this
/// activity may take longer. All prices together are a flow from the first start to the last end.
/// docs/graphs.md, section 5.
struct LaunchPrices {
  std::vector<double> flow_w;  ///< shape [activities]
  double lag_cost_j = 0.0;     ///< sum of flow x lag
  double price_w = 0.0;        ///< of a second of the whole run: the value of the flow
};

[[nodiscard]] inline LaunchPrices prices_of(const FrontierPlan& plan) {
  return {plan.flow_w, plan.lag_cost_j, plan.price_w};
}

/// The critical path: what the last end waits for, from activity to activity.
struct LatestPath {
  std::uint32_t last = 0;              ///< activity that ends last
  std::vector<const GraphArc*> waits;  ///< into it, into what it waits for, ... to the origin
};

/// @param end_s  when activities ended, shape [activities]
[[nodiscard]] LatestPath latest_path(const ExecutionGraph& graph, std::span<const double> end_s);

/// Multiplies all prices by one factor. They stay a flow.
void scale(LaunchPrices& prices, double factor);

/// One step of a subgradient method. After a late end prices rise along the critical path, by
/// `share` of the whole price (or of the least idle power, if that is more). After an end in time
/// all of them fall, by half of `share`. They stay a flow.
/// @param end_s         when activities ended, shape [activities]
/// @param share         0 to 1
/// @param least_idle_w  see LaunchCosts
void step_prices(const ExecutionGraph& graph, std::span<const double> end_s, bool late,
                 double share, double least_idle_w, LaunchPrices& prices);

/// As `enough_w` of LaunchFrontiers::sweep: no frontier reaches it, so all vertices are wanted.
inline constexpr double all_prices = std::numeric_limits<double>::infinity();

/// Frontiers of graphs. A plan is the same whichever others are wanted beside it.
class LaunchFrontiers {
 public:
  /// @param most_exact_visits  visits of nodes after which a sweep begins again less finely; a
  ///                           million take a tenth of a second or so
  explicit LaunchFrontiers(std::uint64_t most_exact_visits = 1'000'000)
      : most_exact_visits_(most_exact_visits) {}

  /// Exact from the slowest time as far as most_exact_visits go. Faster vertices are rounded:
  /// savings per second, and so prices of time, are multiples of 2^-20 of the greatest. Bounds stay
  /// bounds, and the gap shows what rounding costs (docs/graphs.md, section 5). In graphs with more
  /// than 50,000 vertices of hulls, those are left out that change no cost by more than a
  /// ten-thousandth of what a launch can save.
  /// @param times_s   at which plans are wanted, s, see FrontierOptions
  /// @param enough_w  beyond the shortest of times_s the frontier goes on to the first vertex whose
  ///                  price of time is at least this, W
  [[nodiscard]] Frontier sweep(const Contraction& launches, std::vector<double> times_s,
                               double enough_w, const RunContext& context) const;

 private:
  std::uint64_t most_exact_visits_;
};

/// Frontier plans for deadlines, and for somewhat less time than each. One sweep makes those of all
/// deadlines when the first of them is asked for. Plans for much less time are left to a second
/// sweep, since most of a sweep's time goes into the fastest plans.
class ShorterPlans {
 public:
  /// @param shorter  shares of a deadline by which plans end before it, rising from 0; must outlive
  ///                 this
  ShorterPlans(const CrashProblem& problem, std::span<const double> shorter)
      : launches_(problem), shorter_(shorter) {}

  /// One more deadline; its plans come with the next sweep.
  void add(double deadline_s);

  /// @param deadline_s  one of those given
  /// @param share       position in `shorter`
  /// @return null if it was interrupted
  [[nodiscard]] const FrontierPlan* at(double deadline_s, std::size_t share,
                                       const RunContext& context);

 private:
  // These prices choose clocks; bounds rest on others. So rounded ones will do, and an exact sweep
  // is given up early.
  LaunchFrontiers sweeps_{100'000};
  Contraction launches_;
  std::span<const double> shorter_;
  std::set<double> deadlines_s_;
  std::map<double, FrontierPlan> plans_;  // by time
};

/// Lower bound on what launches that end by a time take together, idle power included, J.
/// @param frontier      of launches alone
/// @param least_idle_w  see LaunchCosts
[[nodiscard]] double bound_of_launches_j(const Frontier& frontier, double least_idle_w,
                                         double time_s);

}  // namespace rubato
