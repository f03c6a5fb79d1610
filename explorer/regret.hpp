#pragma once
// Regret of planning with a model: its plans, played on what was measured, against the best plans
// that could have been made with the measurements.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "explorer/solver.hpp"
#include "models/calibration/sweep.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

/// Regret of one plan. Changes are against the default clock as measured; a saving is negative.
struct Regret {
  double promised_energy_pct = 0.0;         ///< change that the model said, against its own default
  double time_pct = 0.0, energy_pct = 0.0;  ///< change that was measured
  double late_pct = 0.0;                    ///< time beyond the slack, over the default; 0: in time
  double best_energy_pct = 0.0;             ///< change of the best plan within the slack
  /// Energy beyond that of the best plan within the slack, over the default's, >= 0. If this plan
  /// is late, the best plan gets the same time: a late plan does not win by being late.
  double regret_pct = 0.0;
};

/// The regret of the plan that is best by `predicted`.
/// @param measured, predicted  costs of the same units at the same clocks, [units x clocks]
/// @param slack_frac           time allowed beyond the default clock's, >= 0
[[nodiscard]] Regret regret_of(const ProfileTable& measured, const ProfileTable& predicted,
                               ClockId default_clock, double slack_frac);

/// What is planned. alone: each kernel as a step of its own (rows are means over kernels). Else one
/// step of all kernels, with one clock for all or a clock for each.
enum class PlannedSteps { alone, one_clock, clock_per_kernel };
[[nodiscard]] std::string_view name_of(PlannedSteps value) noexcept;

/// The plans of one kind at one slack.
struct RegretRow {
  PlannedSteps steps = PlannedSteps::alone;
  double slack_frac = 0.0;
  std::size_t plans = 0, late = 0;
  Regret mean;
  double worst_late_pct = 0.0, worst_regret_pct = 0.0;
};

/// Rows for all kinds at all slacks. Steps of all kernels are left out where fewer than three
/// clocks were measured for all of them. In such a step a kernel runs as often as its `count` says.
/// If all counts are 1, kernels run so often that all take equally long at the default clock. The
/// default clock is the spec's or, where that was not measured, the highest one.
/// @param sweep      one point per clock, with time and power (one_setting)
/// @param predicted  what the model says of each point, shape of the sweep
[[nodiscard]] std::vector<RegretRow> regrets(const GpuSpec& spec, const Sweep& sweep,
                                             std::span<const std::vector<OperatingPoint>> predicted,
                                             std::span<const double> slacks_frac);

}  // namespace rubato
