#pragma once
// Joins parts of two plans for the same launches (a one-point crossover).

#include <span>
#include <vector>

#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// The first launches as in `before`, the others as in `after`. Of the cuts that keep the budget
/// the 32 of least energy are tried in turn. The first one whose runs are long enough for their
/// changes is taken. Empty if there is none.
[[nodiscard]] std::vector<ClockRun> join(const LaunchSequence& sequence,
                                         std::span<const ClockRun> before,
                                         std::span<const ClockRun> after, double budget_s);

}  // namespace rubato
