#pragma once
// What a plan may turn out to save: 90 % intervals, by Monte Carlo draws of other models that fit
// the measurements as well, and of errors that no such model is free of.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "explorer/confidence/error_reach.hpp"
#include "explorer/goal.hpp"
#include "models/table/gpu_model.hpp"
#include "models/validation/model_errors.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"

namespace rubato {

/// 90 % interval of a change against the default clocks in %, negative: less. As drawn, the ends
/// are the 5th and the 95th percentile.
struct Interval {
  double low_pct = 0.0, median_pct = 0.0, high_pct = 0.0;
};

/// Intervals of time and of energy.
struct SavingInterval {
  Interval time, energy;
};

/// Changes of a plan's time in all draws: what its odds are counted in.
class TimeDraws {
 public:
  TimeDraws() = default;
  /// @param changes_pct  against the default clocks
  explicit TimeDraws(std::vector<double> changes_pct);

  /// The odds that a plan takes at most so much longer: the share of draws, 0 to 1.
  [[nodiscard]] double odds_within(double change_pct) const;
  /// The least change that a plan stays within with such odds. @param odds_frac  0 to 1
  [[nodiscard]] double kept_with(double odds_frac) const;

 private:
  std::vector<double> changes_pct_;  // sorted
};

/// What a plan may turn out to be: its intervals and the draws of its time behind them.
struct PlanOutlook {
  SavingInterval interval;
  TimeDraws times;
};

/// Models that are drawn, as many as a spec's ensemble has members; and for each of them draws of
/// the errors that all models of this form have: 256 draws in all.
inline constexpr std::size_t drawn_models = 16, draws_per_model = 16;

/// Changes against a baseline in many draws. Draws of one model follow each other.
class SavingDraws {
 public:
  explicit SavingDraws(std::size_t count) : time_pct_(count), energy_pct_(count) {}

  void set(std::size_t draw, const Cost& cost, const Cost& base);
  [[nodiscard]] SavingInterval interval() const;
  /// The interval of draws_per_model draws for each of several models, after widened().
  [[nodiscard]] SavingInterval widened_interval() const;
  /// That interval, scaled_interval() of it, times cut to what is possible, and the draws of time
  /// moved likewise.
  [[nodiscard]] PlanOutlook outlook(const RelativeErrors& scale, const Cost& estimate_pct,
                                    const Interval& possible_time) const;
  /// The draws behind that interval, in %.
  [[nodiscard]] std::vector<Cost> widened_changes() const;

 private:
  std::vector<double> time_pct_, energy_pct_;
};

/// An interval as wide as campaigns say that it must be, and extended to hold the estimate.
/// @param scale         factor on the distance of both ends from the median, >= 0
/// @param estimate_pct  changes of time and energy
[[nodiscard]] SavingInterval scaled_interval(const SavingInterval& drawn,
                                             const RelativeErrors& scale, const Cost& estimate_pct);

/// The part of an interval that is possible. @param possible  widened to hold its median, the
/// estimate
[[nodiscard]] Interval cut(const Interval& interval, const Interval& possible);

/// The least factor with which scaled_interval() holds what was measured.
[[nodiscard]] Cost needed_scale(const SavingInterval& drawn, const Cost& estimate_pct,
                                const Cost& measured_pct);

/// Logarithms of the errors of changes to clocks far from the default ones. In each draw, one part
/// is shared by all kernels, and one is each kernel's own. Deterministic.
/// @param errors  of cells, as model_errors gives them
/// @return shape [models x draws_per_model x kernels]
[[nodiscard]] std::vector<Cost> draw_change_errors(const ModelErrors& errors, std::size_t models,
                                                   std::size_t kernels);

/// What draw_change_errors scales: draws of unit scale.
struct StandardErrors {
  std::vector<Cost> shared;  ///< Gaussian, shape [models x draws_per_model]
  std::vector<Cost> own;     ///< Student's t, shape [models x draws_per_model x kernels]
};

/// Standard errors, made once for each number of models and kernels, since drawing takes longer
/// than scaling. For any number of threads.
class StandardErrorDraws {
 public:
  [[nodiscard]] std::shared_ptr<const StandardErrors> of(std::size_t models, std::size_t kernels);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const StandardErrors>> made_;
};

/// What to expect of a plan that was chosen on an estimate. Replays it and the default clocks with
/// every drawn model: the plan was not chosen to be best for these. On top come the errors that no
/// model of this form is free of: one that all kernels share which leave the default clocks, and
/// one of each. The median is the value to expect. The interval is extended to hold the estimate.
/// @param model   the one the plan was chosen with
/// @param models  from draw_models
[[nodiscard]] SavingInterval saving_interval(const Trace& trace, const GpuModel& model,
                                             const std::vector<GpuModel>& models,
                                             const ClockGrid& grid, const Plan& plan,
                                             const ModelErrors& errors,
                                             const SwitchModel& switching,
                                             double host_power_w = 0.0);

/// The same for many plans of one trace. What does not depend on the plan is drawn and replayed
/// once. Times stay within what clocks can change, see TimeBand. For one thread; what is passed by
/// reference must outlive it.
class PlanIntervals {
 public:
  /// @param host_power_w  of the rest of the node, for as long as a plan takes; without error
  /// @param shared_draws  standard errors to share with others, or nullptr
  PlanIntervals(const Trace& trace, const GpuModel& model, const std::vector<GpuModel>& models,
                const ClockGrid& grid, const ModelErrors& errors, const SwitchModel& switching,
                double host_power_w = 0.0, StandardErrorDraws* shared_draws = nullptr);

  [[nodiscard]] SavingInterval of(const Plan& plan);
  /// The same for a plan whose totals are known. @param simulated  as simulate() gives them
  [[nodiscard]] SavingInterval of(const Plan& plan, const Cost& simulated) {
    return outlook(plan, simulated, switching_).interval;
  }
  /// The same, with odds, for a plan whose changes of clock take something else.
  [[nodiscard]] PlanOutlook outlook(const Plan& plan, const Cost& simulated,
                                    const SwitchModel& switching);
  /// The interval as drawn: not scaled, and not extended to the estimate.
  [[nodiscard]] SavingInterval drawn(const Plan& plan);
  /// All draws of one plan.
  [[nodiscard]] SavingDraws draws(const Plan& plan) { return draws(plan, switching_); }
  /// Replaces the errors that the constructor drew. @param logarithms  by draw_change_errors()
  void set_change_errors(std::vector<Cost> logarithms);
  /// Changes of time and energy by the model the plan was chosen with.
  [[nodiscard]] Cost estimate_pct(const Plan& plan) const;

 private:
  // Factors on a kernel's time and energy in each draw, shape [models x draws].
  using Factors = std::vector<Cost>;
  struct KnownFactors {
    ErrorReach reach;
    std::shared_ptr<const Factors> factors;
  };

  [[nodiscard]] SavingDraws draws(const Plan& plan, const SwitchModel& switching);
  [[nodiscard]] std::vector<Cost> kernel_costs(const GpuModel& model, const Plan& plan,
                                               const SwitchModel& switching, Cost& rest) const;
  [[nodiscard]] Interval possible_time(const Plan& plan, const Cost& simulated,
                                       const SwitchModel& switching) const;
  [[nodiscard]] std::vector<std::shared_ptr<const Factors>> factors_of(
      std::span<const ErrorReach> reach);

  const Trace& trace_;
  const GpuModel& model_;
  const std::vector<GpuModel>& models_;
  const ClockGrid& grid_;
  const SwitchModel& switching_;
  // With the energy of the rest of the node.
  [[nodiscard]] Cost counted(const Cost& cost) const {
    return {cost.time_s, cost.energy_j + host_power_w_ * cost.time_s};
  }
  RelativeErrors scale_;
  double host_power_w_;
  Cost base_;                                        ///< the default clocks, by the model
  std::vector<Cost> bases_;                          ///< and by the drawn ones, shape [models]
  std::vector<Cost> base_kernels_;                   ///< the same of each kernel, shape [kernels]
  std::vector<std::vector<Cost>> bases_of_kernels_;  ///< shape [models][kernels]
  std::vector<Cost> draws_;  ///< logarithms of errors far from the default clocks, shape [models x
                             ///< draws x kernels]
  std::vector<std::vector<KnownFactors>> known_factors_;  ///< of plans so far, by kernel
};

/// 100 x (value / reference - 1).
[[nodiscard]] double change_pct(double value, double reference);

/// 5th, 50th and 95th percentile. @param values  at least one
[[nodiscard]] Interval interval_of(std::vector<double> values);

/// The values with the means of models pulled apart from each other: the spread of a few models is
/// on average less than that of all models they stand for. @param values  draws_per_model of each
/// model, one model after the other
[[nodiscard]] std::vector<double> widened(std::vector<double> values);

/// Draws the errors of a model, as factors on time and energy: one part shared by all kernels,
/// drawn by the constructor, and one of each kernel.
class ErrorDraw {
 public:
  ErrorDraw(const ModelErrors& errors, std::mt19937_64& random);

  /// Factors of one kernel.
  /// @param reach  from 0 (the clock the model was anchored at) to 1 (far from it)
  [[nodiscard]] Cost factors(std::mt19937_64& random, double reach = 1.0);
  /// Logarithms of the factors where reach is 1.
  [[nodiscard]] Cost logarithms(std::mt19937_64& random);
  /// The two parts of a logarithm: what all kernels share; and one kernel's own, Student's t,
  /// before it is scaled.
  [[nodiscard]] Cost shared() const noexcept { return {shared_.time, shared_.energy}; }
  [[nodiscard]] Cost own(std::mt19937_64& random);

 private:
  ModelErrors errors_;
  std::normal_distribution<double> gaussian_;
  RelativeErrors shared_;
};

/// Interval of a cell, before it is scaled: 100 x the logarithm of predicted over measured.
/// @param by_models  predictions, at least one; with one the interval is of model errors only
[[nodiscard]] SavingInterval cell_interval(std::span<const Cost> by_models, const Cost& measured,
                                           const ModelErrors& errors, std::mt19937_64& random);

}  // namespace rubato
