#pragma once
// Runs of launches with one clock each, given what a change of clock costs: granularity `segment`.

#include "explorer/exploration.hpp"
#include "explorer/switching/search.hpp"

namespace rubato {

/// The plans that do not know of switching are starts of the search, and so is the plan on the
/// spec's first grid where `grid` holds it: more clocks never make a worse plan.
/// @param per_launch  shape [kernels x grid], host power counted
/// @param switching   what a change of clock takes
/// @param budget_s    time of the iteration
/// @param gap_frac    that is small enough, see SwitchingEffort
[[nodiscard]] SwitchingSolution solve_automatic(const ExplorationInput& input,
                                                const GpuModel& model, const ClockGrid& grid,
                                                const ProfileTable& per_launch,
                                                const SwitchModel& switching,
                                                const LeastWaste& goal, double budget_s,
                                                double gap_frac, const RunContext& context);

}  // namespace rubato
