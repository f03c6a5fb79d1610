#pragma once
// Joins the parts of two plans for the same launches.

#include <span>
#include <vector>

#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// The first launches as in `before`, the others as in `after`, cut where that uses the least
/// energy within the budget. Empty if no cut keeps the budget and the rules of changes.
[[nodiscard]] std::vector<ClockRun> join(const LaunchSequence& sequence,
                                         std::span<const ClockRun> before,
                                         std::span<const ClockRun> after, double budget_s);

}  // namespace rubato
