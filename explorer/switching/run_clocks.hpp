#pragma once
// New clocks for the runs of a plan.

#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// Keeps the cuts between runs, and chooses the clocks of all runs anew: least energy within the
/// budget. That is a multiple-choice knapsack with a row for each run. Every change is taken to
/// cost as much as the dearest kind. Neighbours that get the same clock become one run. Empty if
/// there is no such plan.
/// @param runs  two or more, of two clocks or more, each long enough for the change after it
/// O(launches x clocks) time, O(runs x clocks) memory.
[[nodiscard]] std::vector<ClockRun> with_new_clocks(const LaunchSequence& sequence,
                                                    std::span<const ClockRun> runs, double budget_s,
                                                    const RunContext& context);

}  // namespace rubato
