#pragma once
// The clocks of a plan of a trace in the order of time, as they are judged and applied.

#include <vector>

#include "explorer/plan/applicable.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"

namespace rubato {

/// Stretches of one clock each; launches take what the table says.
/// @param per_launch  shape [kernels x grid]
[[nodiscard]] std::vector<AppliedStretch> applied_step(const Trace& trace, const Plan& plan,
                                                       const ClockGrid& grid,
                                                       const ProfileTable& per_launch);

}  // namespace rubato
