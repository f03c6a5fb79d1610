#pragma once
// Ranks whose clocks begin anew in each step.

#include <optional>
#include <span>
#include <vector>

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

}  // namespace rubato
