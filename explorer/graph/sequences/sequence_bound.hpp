#pragma once
// A lower bound where changes of clock take time: one sequence of clocks for each GPU, set by the
// launches of its main stream. docs/graphs.md, section 6.

#include "common/run_context.hpp"
#include "explorer/graph/sequences/gpu_sequence.hpp"
#include "explorer/graph/unit_search.hpp"

namespace rubato {

/// Lower bound, J, on the energy of all plans that end in time and whose main streams set the
/// clocks. Each launch is as fast as alone. It is a Lagrangian dual: subgradient steps move the
/// prices of time.
/// @param costs   of launches alone
/// @param prices  to start from, e.g. of a FrontierPlan at the time asked for
[[nodiscard]] double sequence_bound_j(const LaunchCosts& costs, const ClockGrid& grid,
                                      const SwitchModel& switching, LaunchPrices prices,
                                      const UnitDeadline& deadline, const RunContext& context = {});

}  // namespace rubato
