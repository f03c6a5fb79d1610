#pragma once
// Ranks whose clocks begin anew in each step, and what their graph says of a step's time without
// the times at which things began.

#include <optional>
#include <span>
#include <vector>

#include "traces/graph/execution_graph.hpp"
#include "traces/graph/rank_join.hpp"

namespace rubato {

/// The captures with the clocks of their ranks aligned in each step apart, and the steps one after
/// the other without a pause.
/// @param captures  of several ranks
/// @return nothing unless all have the same two steps or more, every launch is in one, and no host
///         calls are recorded
/// @throws what join_ranks throws of a step
[[nodiscard]] std::optional<std::vector<Capture>> aligned_by_step(
    std::span<const Capture> captures);

/// Makespan of a graph whose lags are replaced by the medians of their kind, so that its structure
/// and a handful of numbers must tell when everything runs. A kind is that of the arc, and whether
/// each of its ends lasts or is a moment.
[[nodiscard]] double span_with_usual_lags_s(const ExecutionGraph& graph);

/// That makespan over the captured one, less 1, of each step apart; nothing unless steps are as in
/// aligned_by_step (one is enough).
/// @throws what capture_graph throws of a step
[[nodiscard]] std::vector<double> usual_lag_errors(std::span<const Capture> captures);

}  // namespace rubato
