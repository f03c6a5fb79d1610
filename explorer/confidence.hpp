#pragma once
// What a plan may turn out to save: intervals from other models that fit as
// well, and what a choice among noisy measurements is worth when measured again.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "explorer/goal.hpp"
#include "models/table/gpu_model.hpp"
#include "models/validation/model_errors.hpp"
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

/// As many models as a spec's ensemble has members, and draws of the errors of their form for each.
inline constexpr std::size_t drawn_models = 16, draws_per_model = 16;

/// Changes against a baseline in many draws.
class SavingDraws {
 public:
  explicit SavingDraws(std::size_t count) : time_pct_(count), energy_pct_(count) {}

  void set(std::size_t draw, const Cost& cost, const Cost& base);
  [[nodiscard]] SavingInterval interval() const;
  /// Of draws_per_model draws for each of several models, in turn: `widened`, and reaching to the
  /// estimate.
  [[nodiscard]] SavingInterval interval(const Cost& estimate, const Cost& base) const;

 private:
  std::vector<double> time_pct_, energy_pct_;
};

/// Logarithms of the errors of changes to clocks far from the default ones: of each drawn model,
/// one part that all kernels share and one of each. Deterministic.
/// @param errors  of cells, as model_errors gives them
/// @return shape [models x draws_per_model x kernels]
[[nodiscard]] std::vector<Cost> draw_change_errors(const ModelErrors& errors, std::size_t models,
                                                   std::size_t kernels);

/// What part of such an error a clock has: 0 where it comes to the same as the default one, and 1
/// from a third on, since predictions of neighbouring clocks err alike, but never quite. Up to four
/// times as much where one of the two lies beyond the clocks the GPU was fitted at.
[[nodiscard]] double error_reach(const GpuSpec& spec, const ClockGrid& grid, ClockId clock);

/// What to expect of a plan that was chosen on an estimate: replays it and the default clocks with
/// every model, which is not the one it was best for. On top come the errors no model of this form
/// is free of: one of all kernels that leave the default clocks, and one of each. The median is
/// the value to expect; the interval reaches to the estimate where that lies outside.
/// @param model   the one the plan was chosen with
/// @param models  from draw_models
[[nodiscard]] SavingInterval saving_interval(const Trace& trace, const GpuModel& model,
                                             const std::vector<GpuModel>& models,
                                             const ClockGrid& grid, const Plan& plan,
                                             const ModelErrors& errors,
                                             const SwitchModel& switching);

/// The same for many plans of one trace: what does not depend on the plan is drawn and replayed
/// once. References must outlive it.
class PlanIntervals {
 public:
  PlanIntervals(const Trace& trace, const GpuModel& model, const std::vector<GpuModel>& models,
                const ClockGrid& grid, const ModelErrors& errors, const SwitchModel& switching);

  [[nodiscard]] SavingInterval of(const Plan& plan) const;

 private:
  [[nodiscard]] std::vector<Cost> kernel_costs(const GpuModel& model, const Plan& plan,
                                               Cost& rest) const;

  const Trace& trace_;
  const GpuModel& model_;
  const std::vector<GpuModel>& models_;
  const ClockGrid& grid_;
  const SwitchModel& switching_;
  Cost base_;                ///< the default clocks, by the model
  std::vector<Cost> bases_;  ///< and by the drawn ones, shape [models]
  std::vector<Cost> draws_;  ///< logarithms of errors far from the default clocks, shape [models x
                             ///< draws x kernels]
};

/// 100 x (value / reference - 1).
[[nodiscard]] double change_pct(double value, double reference);

/// 5th, 50th and 95th percentile. @param values  at least one
[[nodiscard]] Interval interval_of(std::vector<double> values);

/// The values with what differs between models pulled apart: sixteen models show less than all of
/// the spread that they stand for. @param values  draws_per_model of each model, in turn
[[nodiscard]] std::vector<double> widened(std::vector<double> values);

/// Draws of the errors of a model, as factors of time and energy.
class ErrorDraw {
 public:
  ErrorDraw(const ModelErrors& errors, std::mt19937_64& random);

  /// @param reach  from 0 (the clock the model was anchored at) to 1 (far from it)
  [[nodiscard]] Cost factors(std::mt19937_64& random, double reach = 1.0);
  /// Logarithms of the factors where reach is 1.
  [[nodiscard]] Cost logarithms(std::mt19937_64& random);

 private:
  ModelErrors errors_;
  std::normal_distribution<double> gaussian_;
  RelativeErrors shared_;
};

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
