#pragma once
// Runs of launches with one clock each, given what a change of clock costs: granularity `segment`.

#include "explorer/exploration.hpp"
#include "explorer/switching/search.hpp"

namespace rubato {

/// Searches from several starts: the plans that take changes of clock to be free, at each other
/// granularity.
/// @param per_launch  shape [kernels x grid], host power counted
/// @param switching   what a change of clock takes
/// @param budget_s    most time of an iteration
/// @param gap_frac    gap that is small enough, see solve_switching
[[nodiscard]] SwitchingSolution solve_automatic(const ExplorationInput& input,
                                                const GpuModel& model, const ClockGrid& grid,
                                                const ProfileTable& per_launch,
                                                const SwitchModel& switching,
                                                const LeastWaste& goal, double budget_s,
                                                double gap_frac, const RunContext& context);

/// The plan of a question per segment, into `result`. One whose saving does not show in the last
/// digit of a percentage is replaced by the default clocks.
/// @param defaults  of the default clocks
/// @param target    LeastWaste, of the question or for less time
void answer_automatic(const ExplorationInput& input, const GpuModel& model, const ClockGrid& grid,
                      const ProfileTable& per_launch, const Totals& defaults, const Goal& target,
                      double gap_frac, const RunContext& context, PlanResult& result);

}  // namespace rubato
