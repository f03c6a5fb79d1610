#pragma once
// What a choice among noisy measurements is worth when it is measured again.

#include <cstddef>
#include <cstdint>

#include "explorer/confidence/confidence.hpp"

namespace rubato {

/// Measurement campaigns to imagine.
struct Remeasurement {
  RelativeErrors noise;           ///< of one measurement of one cell
  double time_budget_frac = 0.0;  ///< slack of the goal
  double safety = 0.0;            ///< standard errors added to cells other than the default's
  std::size_t campaigns = 200;
  std::uint64_t seed = 20260113;
  double host_power_w = 0.0;  ///< of the rest of the node, counted beside the table; known
};

/// What choosing by measurements promises and what it keeps.
struct WinnersCurse {
  SavingInterval promised;  ///< by the measurements the choice was made on
  SavingInterval kept;      ///< the same plan, measured again
  SavingInterval lost;      ///< kept - promised of each campaign, points
};

/// Plays campaigns: measure every cell of `table` with noise, choose the least
/// energy within the time of the default clock, measure the choice again.
/// Source of the effect: Spaan et al., arXiv 2601.08539: 15.6 % became 14.6 %.
/// @param table  true times and energies of all launches of a unit, shape [units x clocks]
/// @throws UsageError if noise or safety is negative or there is no campaign
[[nodiscard]] WinnersCurse winners_curse(const ProfileTable& table, ClockId default_clock,
                                         const Remeasurement& setting);

/// What to expect of a plan that was chosen among measured cells: cells that were measured too good
/// were the ones chosen, so it keeps less when it is measured again. As many campaigns as take
/// about the same time on any table.
/// @param table        the measured cells, counts included
/// @param estimate_pct  its change of time and energy by these cells
[[nodiscard]] SavingInterval remeasured_interval(const ProfileTable& table, ClockId default_clock,
                                                 Remeasurement setting, const Cost& estimate_pct);

/// Errors of measured cells as those of a model: nothing in common, and Gaussian, of which
/// Student's t has the deviation at a smaller scale.
[[nodiscard]] ModelErrors errors_of_noise(const RelativeErrors& noise);

}  // namespace rubato
