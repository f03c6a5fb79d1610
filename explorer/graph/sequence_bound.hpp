#pragma once
// What no clocks can stay below when changes of clock take time: one sequence of clocks for each
// GPU, set by the launches of its main stream. docs/graphs.md, section 6.

#include "common/run_context.hpp"
#include "explorer/graph/gpu_sequence.hpp"
#include "explorer/graph/unit_search.hpp"

namespace rubato {

/// Least energy of all plans whose main streams set the clocks and that end in time, from below:
/// each launch as fast as alone.
/// @param costs    of launches alone
/// @param prices   a start, e.g. of a FrontierPlan at the time asked for
/// @param known_j  energy of some plan: how far prices of changes may have to move
[[nodiscard]] double sequence_bound_j(const LaunchCosts& costs, const ClockGrid& grid,
                                      const SwitchModel& switching, LaunchPrices prices,
                                      const UnitDeadline& deadline, double known_j,
                                      const RunContext& context = {});

}  // namespace rubato
