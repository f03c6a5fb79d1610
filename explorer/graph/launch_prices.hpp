#pragma once
// Lagrange multipliers of an execution graph: a price of time for every activity.

#include <span>
#include <vector>

#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// A price of time for every activity, a flow from first start to last end: docs/graphs.md.
struct LaunchPrices {
  std::vector<double> flow_w;  ///< shape [activities]
  double lag_cost_j = 0.0;     ///< sum of flow x lag
  double price_w = 0.0;        ///< of the whole, the value of the flow
};

/// All prices by one factor: still a flow.
void scale(LaunchPrices& prices, double factor);

/// `raise_w` more flow along the path that ends last: still a flow.
/// @param end_s  when activities ended, shape [activities]
void raise_latest_path(const ExecutionGraph& graph, std::span<const double> end_s, double raise_w,
                       LaunchPrices& prices);

}  // namespace rubato
