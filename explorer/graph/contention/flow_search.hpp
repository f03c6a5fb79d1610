#pragma once
// Prices of time for which payments make the highest bound.

#include "common/run_context.hpp"
#include "explorer/graph/contention/paid_graph.hpp"

namespace rubato {

/// The highest bound found: all prices by one factor first, then along the path that ends late
/// where they stand, then along one stream after the other where several are full.
/// @param start  any flow
/// @param units  as of PaidGraph::bound_j
[[nodiscard]] double best_bound_j(const LaunchCosts& costs, PaidGraph& paid,
                                  const ContendedDeadline& deadline, ArcFlow start,
                                  const LaunchUnits* units, const RunContext& context);

}  // namespace rubato
