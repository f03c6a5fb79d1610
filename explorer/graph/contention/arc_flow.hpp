#pragma once
// Prices of time on the arcs of a graph: what a second of waiting is worth, arc by arc.

#include <span>
#include <vector>

#include "explorer/graph/launch_prices.hpp"
#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// A flow from the origin to the last end, W. For starts S and ends E of any replay that ends by T,
///   sum of node x (E - S) + sum of arc x (S of the one - E of the other - lag)
///     + sum of to_end x (T - E) = price x T - lag_cost.
struct ArcFlow {
  std::vector<double> arc_w;     ///< shape [arcs], by the activity that waits, each >= 0
  std::vector<double> node_w;    ///< shape [activities]: what flows through
  std::vector<double> to_end_w;  ///< shape [activities]: what flows from there to the last end
  double lag_cost_j = 0.0;       ///< sum of flow x lag
  double price_w = 0.0;          ///< the value of the flow
};

/// @param arc_w  shape [arcs]: of every activity but the origin no more flows out than in
[[nodiscard]] ArcFlow arc_flow(const ExecutionGraph& graph, std::vector<double> arc_w);

/// All prices by one factor: still a flow.
void scale(ArcFlow& flow, double factor);

/// `raise_w` more along a path: still a flow if no less than -least_along() is asked for.
void raise_along(const ExecutionGraph& graph, const LatestPath& path, double raise_w,
                 ArcFlow& flow);

/// The least that flows on an arc of a path.
[[nodiscard]] double least_along(const ExecutionGraph& graph, const LatestPath& path,
                                 const ArcFlow& flow);

/// `raise_w` more along the path that ends last: still a flow.
/// @param end_s  when activities ended, shape [activities]
void raise_latest_path(const ExecutionGraph& graph, std::span<const double> end_s, double raise_w,
                       ArcFlow& flow);

/// Position of an arc among all of the graph.
[[nodiscard]] inline std::size_t arc_index(const ExecutionGraph& graph, const GraphArc& arc) {
  return static_cast<std::size_t>(&arc - graph.arcs_into(ActivityId{0}).data());
}

}  // namespace rubato
