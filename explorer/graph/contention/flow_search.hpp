#pragma once
// Search for the prices of time that give the highest contended bound.

#include "common/run_context.hpp"
#include "explorer/graph/contention/paid_graph.hpp"

namespace rubato {

/// The highest bound found, J; 0 if stopped before the first. Three searches follow each other. All
/// prices are scaled by one factor. Subgradient steps move them along the critical path. Where
/// several streams are full, prices move along one stream after the other.
/// @param start  any flow
/// @param units  as of PaidGraph::bound_j
[[nodiscard]] double best_bound_j(const LaunchCosts& costs, PaidGraph& paid,
                                  const ContendedDeadline& deadline, ArcFlow start,
                                  const LaunchUnits* units, const RunContext& context);

}  // namespace rubato
