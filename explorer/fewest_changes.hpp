#pragma once
// Among choices of the same time and energy, one with few clocks, and so few changes of clock.

#include <vector>

#include "models/table/profile_table.hpp"

namespace rubato {

/// A choice of the same times and energies, to rounding. Units go to the clock that most of them
/// can share, of equal ones to the default clock; then those that are left to the next one.
/// @param table          [units x clocks]
/// @param clock_of_unit  shape [units]
[[nodiscard]] std::vector<ClockId> with_few_changes(const ProfileTable& table,
                                                    const std::vector<ClockId>& clock_of_unit,
                                                    ClockId default_clock);

}  // namespace rubato
