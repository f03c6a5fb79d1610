#pragma once
// Among choices of the same time and energy, one with few changes of clock.

#include <vector>

#include "explorer/choice.hpp"
#include "models/table/profile_table.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Changes of clock in one iteration of many, repeats and the change from the one before included.
/// @param clock_of_unit  shape [units]
[[nodiscard]] std::uint64_t changes_of_clock(const Trace& trace, const ChoiceUnits& units,
                                             const std::vector<ClockId>& clock_of_unit);

/// A choice of the same times and energies, to rounding, with no more changes of clock: a local
/// optimum. Units go to clocks that many of them can share; of equal ones to the default clock.
/// Then each goes to the clock of a neighbour as long as that helps.
/// @param table  [units x clocks]
[[nodiscard]] std::vector<ClockId> with_few_changes(const Trace& trace, const ChoiceUnits& units,
                                                    const ProfileTable& table,
                                                    const std::vector<ClockId>& clock_of_unit,
                                                    ClockId default_clock);

}  // namespace rubato
