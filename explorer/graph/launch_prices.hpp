#pragma once
// Prices of time for every launch (Lagrange multipliers, shadow prices), and the time-energy
// frontiers of launches that they come from. Frontiers are exact, or, where that takes long, exact
// to a small gap.

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// The time-energy frontier of launches, and plans on it. It is swept once, whatever is asked: so
/// an answer is the same whichever others are asked beside it.
class LaunchFrontier {
 public:
  /// Exact where a sweep visits few nodes. Else savings per second, and so prices of time, are
  /// rounded to a thousandth or so of the least idle power. Bounds stay bounds, and the gap shows
  /// what rounding costs (docs/graphs.md, section 5).
  /// @param around_s           time near which plans are wanted, s
  /// @param least_idle_w       see LaunchCosts
  /// @param most_exact_visits  visits of nodes after which a sweep begins again less finely; a
  ///                           million take a tenth of a second or so
  LaunchFrontier(const CrashProblem& problem, double around_s, double least_idle_w,
                 std::uint64_t most_exact_visits, const RunContext& context);

  /// Without plans.
  [[nodiscard]] const Frontier& frontier() const noexcept { return frontier_; }

  /// Durations of the slowest of its plans that ends within a time, else of the fastest; prices of
  /// the next slower one. Plans are at all vertices if these are few, else a fifth of a percent of
  /// time apart near `around_s`.
  /// @return nothing if the sweep was interrupted before
  [[nodiscard]] std::optional<FrontierPlan> plan_within(double time_s) const;

 private:
  Contraction launches_;
  Frontier frontier_;
  std::vector<FrontierPlan> plans_;  // of contracted launches, fastest first
};

/// Lower bound on what launches that end by a time take together, idle power included, J.
/// @param frontier      of launches alone
/// @param least_idle_w  see LaunchCosts
[[nodiscard]] double bound_of_launches_j(const Frontier& frontier, double least_idle_w,
                                         double time_s);

}  // namespace rubato
