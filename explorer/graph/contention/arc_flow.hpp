#pragma once
// Prices of time (Lagrange multipliers) on the arcs of a graph: what a second of waiting is worth,
// arc by arc.

#include <span>
#include <vector>

#include "explorer/graph/launch_prices.hpp"
#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// A flow from the origin to the last end, W. For starts S and ends E of any replay that ends by T
///   sum over activities of node x (E - S)
///     + sum over arcs of arc x (S of the one that waits - E of the one waited for - lag)
///     + sum over activities of to_end x (T - E)  =  price x T - lag_cost
struct ArcFlow {
  std::vector<double> arc_w;     ///< shape [arcs], in the order of arc_index(), each >= 0
  std::vector<double> node_w;    ///< shape [activities]: what flows through
  std::vector<double> to_end_w;  ///< shape [activities]: what flows from there to the last end
  double lag_cost_j = 0.0;       ///< sum over arcs of flow x lag
  double price_w = 0.0;          ///< the value of the flow
};

/// The flow with these values on arcs. What flows into an activity and not out of it goes to the
/// last end.
/// @param arc_w  shape [arcs]; from every activity but the origin no more flows out than in
[[nodiscard]] ArcFlow arc_flow(const ExecutionGraph& graph, std::vector<double> arc_w);

/// Multiplies all prices by one factor. They stay a flow.
void scale(ArcFlow& flow, double factor);

/// Adds `raise_w` along a path. It stays a flow if raise_w >= -least_along().
void raise_along(const ExecutionGraph& graph, const LatestPath& path, double raise_w,
                 ArcFlow& flow);

/// The least that flows on an arc of a path.
[[nodiscard]] double least_along(const ExecutionGraph& graph, const LatestPath& path,
                                 const ArcFlow& flow);

/// Adds `raise_w` along the critical path. It stays a flow.
/// @param end_s  when activities ended, shape [activities]
void raise_latest_path(const ExecutionGraph& graph, std::span<const double> end_s, double raise_w,
                       ArcFlow& flow);

/// Position of an arc among all of the graph.
[[nodiscard]] inline std::size_t arc_index(const ExecutionGraph& graph, const GraphArc& arc) {
  return static_cast<std::size_t>(&arc - graph.arcs_into(ActivityId{0}).data());
}

}  // namespace rubato
