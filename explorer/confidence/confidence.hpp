#pragma once
// What a plan may turn out to save: intervals from other models that fit as well.

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
  /// Of draws_per_model draws for each of several models, in turn: `widened`.
  [[nodiscard]] SavingInterval widened_interval() const;
  /// The draws of that interval, in %.
  [[nodiscard]] std::vector<Cost> widened_changes() const;

 private:
  std::vector<double> time_pct_, energy_pct_;
};

/// An interval as wide as campaigns say that it must be, and reaching to the estimate.
/// @param scale         of both sides, >= 0
/// @param estimate_pct  changes of time and energy
[[nodiscard]] SavingInterval scaled_interval(const SavingInterval& drawn,
                                             const RelativeErrors& scale, const Cost& estimate_pct);

/// By what a drawn interval must be multiplied to hold what was measured, as scaled_interval does.
[[nodiscard]] Cost needed_scale(const SavingInterval& drawn, const Cost& estimate_pct,
                                const Cost& measured_pct);

/// Logarithms of the errors of changes to clocks far from the default ones: of each drawn model,
/// one part that all kernels share and one of each. Deterministic.
/// @param errors  of cells, as model_errors gives them
/// @return shape [models x draws_per_model x kernels]
[[nodiscard]] std::vector<Cost> draw_change_errors(const ModelErrors& errors, std::size_t models,
                                                   std::size_t kernels);

/// What draw_change_errors scales: Gaussians and Student's t of unit scale.
struct StandardErrors {
  std::vector<Cost> shared;  ///< shape [models x draws_per_model]
  std::vector<Cost> own;     ///< shape [models x draws_per_model x kernels]
};

/// Standard errors, made once for each number of models and kernels: they take longer than what is
/// made of them. For any number of threads.
class StandardErrorDraws {
 public:
  [[nodiscard]] std::shared_ptr<const StandardErrors> of(std::size_t models, std::size_t kernels);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const StandardErrors>> made_;
};

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
                                             const SwitchModel& switching,
                                             double host_power_w = 0.0);

/// The same for many plans of one trace: what does not depend on the plan is drawn and replayed
/// once. For one thread; references must outlive it.
class PlanIntervals {
 public:
  /// @param host_power_w  of the rest of the node, counted for as long as a plan takes; known
  /// @param shared_draws  where others draw errors too, or nullptr
  PlanIntervals(const Trace& trace, const GpuModel& model, const std::vector<GpuModel>& models,
                const ClockGrid& grid, const ModelErrors& errors, const SwitchModel& switching,
                double host_power_w = 0.0, StandardErrorDraws* shared_draws = nullptr);

  [[nodiscard]] SavingInterval of(const Plan& plan);
  /// The same where it is known what simulate() adds up.
  [[nodiscard]] SavingInterval of(const Plan& plan, const Cost& simulated) {
    return of(plan, simulated, switching_);
  }
  /// Where changes of clock take something else than of other plans.
  [[nodiscard]] SavingInterval of(const Plan& plan, const Cost& simulated,
                                  const SwitchModel& switching);
  /// As drawn, before it is scaled and reaches to the estimate.
  [[nodiscard]] SavingInterval drawn(const Plan& plan);
  /// All draws of one plan.
  [[nodiscard]] SavingDraws draws(const Plan& plan) { return draws(plan, switching_); }
  /// Takes other errors than the constructor drew. @param logarithms  as of draw_change_errors
  void set_change_errors(std::vector<Cost> logarithms);
  /// Changes of time and energy by the model the plan was chosen with.
  [[nodiscard]] Cost estimate_pct(const Plan& plan) const;

 private:
  // Factors of a kernel's time and energy in each draw, shape [models x draws].
  using Factors = std::vector<Cost>;
  struct KnownFactors {
    ErrorReach reach;
    std::shared_ptr<const Factors> factors;
  };

  [[nodiscard]] SavingDraws draws(const Plan& plan, const SwitchModel& switching);
  [[nodiscard]] std::vector<Cost> kernel_costs(const GpuModel& model, const Plan& plan,
                                               const SwitchModel& switching, Cost& rest) const;
  [[nodiscard]] std::vector<std::shared_ptr<const Factors>> factors_of(
      std::span<const ErrorReach> reach);

  const Trace& trace_;
  const GpuModel& model_;
  const std::vector<GpuModel>& models_;
  const ClockGrid& grid_;
  const SwitchModel& switching_;
  /// With the rest of the node.
  [[nodiscard]] Cost counted(const Cost& cost) const {
    return {cost.time_s, cost.energy_j + host_power_w_ * cost.time_s};
  }
  RelativeErrors scale_;
  double host_power_w_;
  Cost base_;                ///< the default clocks, by the model
  std::vector<Cost> bases_;  ///< and by the drawn ones, shape [models]
  std::vector<Cost> draws_;  ///< logarithms of errors far from the default clocks, shape [models x
                             ///< draws x kernels]
  std::vector<std::vector<KnownFactors>> known_factors_;  ///< of plans so far, by kernel
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
  /// The two parts of a logarithm: what all kernels share, and Student's t of unit scale.
  [[nodiscard]] Cost shared() const noexcept { return {shared_.time, shared_.energy}; }
  [[nodiscard]] Cost own(std::mt19937_64& random);

 private:
  ModelErrors errors_;
  std::normal_distribution<double> gaussian_;
  RelativeErrors shared_;
};

/// Of a cell against what was measured, in % of its logarithm, before it is scaled.
/// @param by_models  at least one; with fewer than two the interval knows of model errors only
[[nodiscard]] SavingInterval cell_interval(std::span<const Cost> by_models, const Cost& measured,
                                           const ModelErrors& errors, std::mt19937_64& random);

}  // namespace rubato
