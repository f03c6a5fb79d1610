#pragma once
// Winner's curse: a choice among noisy measurements favours lucky ones, and keeps less than it
// promised when it is measured again.

#include <cstddef>
#include <cstdint>

#include "explorer/confidence/confidence.hpp"

namespace rubato {

/// Measurement campaigns to imagine.
struct Remeasurement {
  RelativeErrors noise;           ///< of one measurement of one cell, standard deviation
  double time_budget_frac = 0.0;  ///< slack of the goal
  double safety = 0.0;            ///< standard errors added to cells other than the default's
  std::size_t campaigns = 200;
  std::uint64_t seed = 20260113;
  double host_power_w = 0.0;  ///< of the rest of the node: added to the table, without noise
};

/// What choosing by measurements promises and what it keeps.
struct WinnersCurse {
  SavingInterval promised;        ///< by the measurements the choice was made on
  SavingInterval kept;            ///< the same plan, measured again
  SavingInterval lost;            ///< kept - promised of each campaign, percentage points
  std::vector<double> lost_time;  ///< of these the times, shape [campaigns]
};

/// Plays campaigns: measure every cell of `table` with noise, choose the least
/// energy within the time of the default clock, measure the choice again.
/// Source of the effect: Spaan et al., arXiv 2601.08539: an energy saving of 15.6 % became 14.6 %.
/// @param table  true times and energies of all launches of a unit, shape [units x clocks]
/// @throws UsageError if noise or safety is negative or there is no campaign
[[nodiscard]] WinnersCurse winners_curse(const ProfileTable& table, ClockId default_clock,
                                         const Remeasurement& setting);

/// What to expect of a plan that was chosen among measured cells: its change by these cells, moved
/// by what winners_curse() loses. 8 to 200 campaigns, fewer for large tables, so that most tables
/// take about the same time.
/// @param table         the measured cells, launch counts included
/// @param estimate_pct  the plan's change of time and energy by these cells
[[nodiscard]] PlanOutlook remeasured_outlook(const ProfileTable& table, ClockId default_clock,
                                             Remeasurement setting, const Cost& estimate_pct);

/// Noise of measured cells as errors of a model. Nothing is shared. Each cell's own part, Student's
/// t with four degrees of freedom, has 0.71 of the noise as its scale: the same standard deviation.
[[nodiscard]] ModelErrors errors_of_noise(const RelativeErrors& noise);

}  // namespace rubato
