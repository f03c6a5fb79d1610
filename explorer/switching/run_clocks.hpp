#pragma once
// New clocks for the runs of a plan.

#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/switching/launch_sequence.hpp"

namespace rubato {

/// The same launches together, each run at the clock with which all use the least energy within
/// the budget: a knapsack over runs, where every change costs as much as its dearest kind. Runs
/// that come to the same clock are joined. Empty if there is no such plan.
/// @param runs  of two clocks or more, each long enough for the change behind it
/// O(launches x clocks) time, O(runs x clocks) memory.
[[nodiscard]] std::vector<ClockRun> with_new_clocks(const LaunchSequence& sequence,
                                                    std::span<const ClockRun> runs, double budget_s,
                                                    const RunContext& context);

}  // namespace rubato
