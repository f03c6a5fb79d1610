#pragma once
// What a plan may turn out to save: intervals from other models that fit as
// well, and what a choice among noisy measurements is worth when measured again.

#include <cstddef>
#include <cstdint>

#include "explorer/goal.hpp"
#include "models/table/gpu_model.hpp"
#include "models/validation/uncertainty.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"

namespace rubato {

/// Change against the default clocks, %, negative is less.
struct Interval {
  double low_pct = 0.0, median_pct = 0.0, high_pct = 0.0;
};

/// 5th, 50th and 95th percentile of time and energy.
struct SavingInterval {
  Interval time, energy;
};

/// Replays a plan and the default clocks with every model, each cell with an
/// error of its own that both share where the clock is the same.
/// @param models  from draw_models
[[nodiscard]] SavingInterval saving_interval(const Trace& trace,
                                             const std::vector<GpuModel>& models,
                                             const ClockGrid& grid, const Plan& plan,
                                             const RelativeErrors& cell,
                                             const SwitchModel& switching);

/// Measurement campaigns to imagine.
struct Remeasurement {
  RelativeErrors noise;           ///< of one measurement of one cell
  double time_budget_frac = 0.0;  ///< slack of the goal
  double safety = 0.0;            ///< standard errors added to cells other than the default's
  std::size_t campaigns = 200;
  std::uint64_t seed = 20260113;
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

}  // namespace rubato
