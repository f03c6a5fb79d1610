#include "explorer/confidence/confidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "explorer/free_cost.hpp"
#include "explorer/solver.hpp"
#include "models/calibration/change_errors.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

Cost total_of(const SimResult& result) { return {result.total.time_s, result.total.energy_j}; }

void add(Cost& sum, const Cost& cost) {
  sum.time_s += cost.time_s;
  sum.energy_j += cost.energy_j;
}

// As simulate() adds it up, but faster where it can be.
Cost total_of(const Trace& trace, const GpuModel& model, const ClockGrid& grid, const Plan& plan,
              const SwitchModel& switching) {
  if (switching.is_free() && model.measured() == nullptr)
    return free_cost(trace, model, grid, plan);
  return total_of(simulate(trace, model, grid, plan, switching));
}

ModelErrors change_errors(const ModelErrors& errors) {
  const auto of_change = [](const RelativeErrors& cell) -> RelativeErrors {
    return {time_change_error * cell.time, energy_change_error * cell.energy};
  };
  return {of_change(errors.shared), of_change(errors.own), errors.scales};
}

RelativeErrors scale_of_model(const GpuModel& model, const RelativeErrors& scale) {
  for (std::size_t k = 0; k < model.kernels(); ++k) {
    if (model.source(id_at<KernelId>(k)) != CoefficientSource::measured)
      return widening_only(scale);
  }
  return scale;
}

Cost change_pct(const Cost& cost, const Cost& base) {
  return {rubato::change_pct(cost.time_s, base.time_s),
          rubato::change_pct(cost.energy_j, base.energy_j)};
}

void reach_to(Interval& interval, double estimate_pct) {
  interval.low_pct = std::min(interval.low_pct, estimate_pct);
  interval.high_pct = std::max(interval.high_pct, estimate_pct);
}

Interval scaled(const Interval& drawn, double scale) {
  return {drawn.median_pct + scale * (drawn.low_pct - drawn.median_pct), drawn.median_pct,
          drawn.median_pct + scale * (drawn.high_pct - drawn.median_pct)};
}

double needed_scale(const Interval& drawn, double estimate_pct, double measured_pct) {
  const double off = measured_pct - drawn.median_pct, reached = estimate_pct - drawn.median_pct;
  if (off == 0.0 || (off > 0.0 ? reached >= off : reached <= off)) return 0.0;
  const double side =
      off > 0.0 ? drawn.high_pct - drawn.median_pct : drawn.low_pct - drawn.median_pct;
  return side == 0.0 ? std::numeric_limits<double>::infinity() : off / side;
}

}  // namespace

double change_pct(double value, double reference) {
  return value == reference ? 0.0 : 100.0 * (value / reference - 1.0);  // of nothing, too
}

Interval interval_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.05), at(0.5), at(0.95)};
}

std::vector<double> widened(std::vector<double> values) {
  const std::size_t models = values.size() / draws_per_model;
  const double centre = sum(values) / static_cast<double>(values.size());
  const double farther = few_draws_factor(models) - 1.0;
  for (std::size_t m = 0; m < models; ++m) {
    const std::span<double> of_model(values.data() + m * draws_per_model, draws_per_model);
    const double mean = sum(of_model) / static_cast<double>(draws_per_model);
    for (double& value : of_model) value += farther * (mean - centre);
  }
  return values;
}

void SavingDraws::set(std::size_t draw, const Cost& cost, const Cost& base) {
  time_pct_[draw] = change_pct(cost.time_s, base.time_s);
  energy_pct_[draw] = change_pct(cost.energy_j, base.energy_j);
}

SavingInterval SavingDraws::interval() const {
  return {interval_of(time_pct_), interval_of(energy_pct_)};
}

SavingInterval SavingDraws::widened_interval() const {
  return {interval_of(widened(time_pct_)), interval_of(widened(energy_pct_))};
}

std::vector<Cost> SavingDraws::widened_changes() const {
  const std::vector<double> time_pct = widened(time_pct_), energy_pct = widened(energy_pct_);
  std::vector<Cost> changes;
  for (std::size_t i = 0; i < time_pct.size(); ++i) changes.push_back({time_pct[i], energy_pct[i]});
  return changes;
}

PlanOutlook SavingDraws::outlook(const RelativeErrors& scale, const Cost& estimate_pct,
                                 const Interval& possible_time) const {
  std::vector<double> times = widened(time_pct_);
  SavingInterval found =
      scaled_interval({interval_of(times), interval_of(widened(energy_pct_))}, scale, estimate_pct);
  found.time = cut(found.time, possible_time);
  const double median_pct = interval_of(times).median_pct;
  for (double& pct : times) {
    pct = median_pct + scale.time * (pct - median_pct);
    pct = cut({pct, pct, pct}, possible_time).median_pct;
  }
  return {found, TimeDraws(std::move(times))};
}

SavingInterval scaled_interval(const SavingInterval& drawn, const RelativeErrors& scale,
                               const Cost& estimate_pct) {
  SavingInterval found{scaled(drawn.time, scale.time), scaled(drawn.energy, scale.energy)};
  reach_to(found.time, estimate_pct.time_s);
  reach_to(found.energy, estimate_pct.energy_j);
  return found;
}

Interval cut(const Interval& interval, const Interval& possible) {
  const double low = std::min(possible.low_pct, possible.median_pct),
               high = std::max(possible.high_pct, possible.median_pct);
  return {std::clamp(interval.low_pct, low, high), std::clamp(interval.median_pct, low, high),
          std::clamp(interval.high_pct, low, high)};
}

Cost needed_scale(const SavingInterval& drawn, const Cost& estimate_pct, const Cost& measured_pct) {
  return {needed_scale(drawn.time, estimate_pct.time_s, measured_pct.time_s),
          needed_scale(drawn.energy, estimate_pct.energy_j, measured_pct.energy_j)};
}

namespace {

StandardErrors draw_standard_errors(std::size_t models, std::size_t kernels) {
  const ModelErrors units{.shared = {1.0, 1.0}, .own = {}};
  StandardErrors drawn;
  drawn.shared.reserve(models * draws_per_model);
  drawn.own.reserve(models * draws_per_model * kernels);
  for (std::size_t m = 0; m < models; ++m) {
    std::mt19937_64 random(20260113 + m);
    for (std::size_t d = 0; d < draws_per_model; ++d) {
      ErrorDraw draw(units, random);
      drawn.shared.push_back(draw.shared());
      for (std::size_t k = 0; k < kernels; ++k) drawn.own.push_back(draw.own(random));
    }
  }
  return drawn;
}

std::vector<Cost> scaled_to(const ModelErrors& errors, const StandardErrors& standard) {
  const ModelErrors of_change = change_errors(errors);
  const std::size_t kernels = standard.own.size() / standard.shared.size();
  std::vector<Cost> draws;
  draws.reserve(standard.own.size());
  for (std::size_t i = 0; i < standard.own.size(); ++i) {
    const Cost &shared = standard.shared[i / kernels], &own = standard.own[i];
    draws.push_back(
        {of_change.shared.time * shared.time_s + of_change.own.time * own.time_s,
         of_change.shared.energy * shared.energy_j + of_change.own.energy * own.energy_j});
  }
  return draws;
}

}  // namespace

std::vector<Cost> draw_change_errors(const ModelErrors& errors, std::size_t models,
                                     std::size_t kernels) {
  return scaled_to(errors, draw_standard_errors(models, kernels));
}

std::shared_ptr<const StandardErrors> StandardErrorDraws::of(std::size_t models,
                                                             std::size_t kernels) {
  const std::scoped_lock lock(mutex_);
  auto& made = made_[{models, kernels}];
  if (!made) made = std::make_shared<const StandardErrors>(draw_standard_errors(models, kernels));
  return made;
}

ErrorDraw::ErrorDraw(const ModelErrors& errors, std::mt19937_64& random) : errors_(errors) {
  shared_ = {errors.shared.time * gaussian_(random), errors.shared.energy * gaussian_(random)};
}

Cost ErrorDraw::factors(std::mt19937_64& random, double reach) {
  const Cost log = logarithms(random);
  return {std::exp(reach * log.time_s), std::exp(reach * log.energy_j)};
}

Cost ErrorDraw::own(std::mt19937_64& random) {
  const auto student = [&] {
    double squares = 0.0;
    for (int i = 0; i < own_freedom; ++i) squares += std::pow(gaussian_(random), 2);
    return gaussian_(random) * std::sqrt(own_freedom / squares);
  };
  const double time = student();
  return {time, student()};
}

Cost ErrorDraw::logarithms(std::mt19937_64& random) {
  const Cost drawn = own(random);
  return {shared_.time + errors_.own.time * drawn.time_s,
          shared_.energy + errors_.own.energy * drawn.energy_j};
}

PlanIntervals::PlanIntervals(const Trace& trace, const GpuModel& model,
                             const std::vector<GpuModel>& models, const ClockGrid& grid,
                             const ModelErrors& errors, const SwitchModel& switching,
                             double host_power_w, StandardErrorDraws* shared_draws)
    : trace_(trace),
      model_(model),
      models_(models),
      grid_(grid),
      switching_(switching),
      scale_(scale_of_model(model, errors.scales.plans)),
      host_power_w_(host_power_w),
      bases_(models.size()),
      bases_of_kernels_(models.size()),
      draws_(shared_draws != nullptr
                 ? scaled_to(errors, *shared_draws->of(models.size(), trace.kernels.size()))
                 : draw_change_errors(errors, models.size(), trace.kernels.size())),
      known_factors_(trace.kernels.size()) {
  const Plan defaults = uniform_plan(trace, grid.default_clock());
  base_ = counted(total_of(trace, model, grid, defaults, switching));
  Cost none;
  base_kernels_ = kernel_costs(model, defaults, switching, none);
  parallel_for(models.size(), [&](std::size_t m) {
    Cost rest;
    bases_[m] = counted(total_of(trace, models[m], grid, defaults, switching));
    bases_of_kernels_[m] = kernel_costs(models[m], defaults, switching, rest);
  });
  // Where a kernel stands in the trace moves no draw.
  const std::vector<std::size_t> order = order_by_name(trace.kernels);
  const std::vector<Cost> drawn = draws_;
  for (std::size_t i = 0; i < drawn.size(); ++i)
    draws_[i - i % order.size() + order[i % order.size()]] = drawn[i];
}

std::vector<Cost> PlanIntervals::kernel_costs(const GpuModel& model, const Plan& plan,
                                              const SwitchModel& switching, Cost& rest) const {
  if (switching.is_free() && model.measured() == nullptr)
    return free_costs(trace_, model, grid_, plan);
  const SimResult result = simulate(trace_, model, grid_, plan, switching);
  rest = {result.switching.time_s, result.switching.energy_j};
  std::vector<Cost> costs;
  for (const Totals& totals : result.by_kernel) costs.push_back({totals.time_s, totals.energy_j});
  return costs;
}

SavingInterval PlanIntervals::of(const Plan& plan) {
  return of(plan, counted(total_of(trace_, model_, grid_, plan, switching_)));
}

PlanOutlook PlanIntervals::outlook(const Plan& plan, const Cost& simulated,
                                   const SwitchModel& switching) {
  return draws(plan, switching)
      .outlook(scale_, change_pct(simulated, base_), possible_time(plan, simulated, switching));
}

// Changes of time that a plan may bring if every kernel is at an end of its band.
Interval PlanIntervals::possible_time(const Plan& plan, const Cost& simulated,
                                      const SwitchModel& switching) const {
  const auto changes = changes_of_kernels(trace_, model_, grid_, plan);
  Cost rest;
  (void)kernel_costs(model_, plan, switching, rest);
  double low_s = rest.time_s, high_s = rest.time_s;
  for (std::size_t k = 0; k < changes.size(); ++k) {
    const double usual_s = base_kernels_[k].time_s;
    if (!(usual_s > 0.0)) continue;
    low_s += changes[k].band.low * usual_s;
    high_s += changes[k].band.high * usual_s;
  }
  return {rubato::change_pct(low_s, base_.time_s),
          rubato::change_pct(simulated.time_s, base_.time_s),
          rubato::change_pct(high_s, base_.time_s)};
}

Cost PlanIntervals::estimate_pct(const Plan& plan) const {
  return change_pct(counted(total_of(trace_, model_, grid_, plan, switching_)), base_);
}

// Factors for each kernel, null for those that stay at the default clocks. They are kept, since
// plans of other slacks take most kernels equally far.
std::vector<std::shared_ptr<const PlanIntervals::Factors>> PlanIntervals::factors_of(
    std::span<const ErrorReach> reach) {
  constexpr std::size_t most_kept = 8;  // reaches of a kernel
  std::vector<std::shared_ptr<const Factors>> all(reach.size());
  parallel_for(reach.size(), [&](std::size_t k) {
    if (reach[k] == ErrorReach{}) return;
    std::vector<KnownFactors>& known = known_factors_[k];
    const auto same = std::ranges::find(known, reach[k], &KnownFactors::reach);
    if (same != known.end()) {
      all[k] = same->factors;
      return;
    }
    Factors factors;
    factors.reserve(draws_.size() / reach.size());
    for (std::size_t i = k; i < draws_.size(); i += reach.size())
      factors.push_back(with_error({1.0, 1.0}, reach[k], draws_[i]));
    all[k] = std::make_shared<const Factors>(std::move(factors));
    if (known.size() == most_kept) known.erase(known.begin());
    known.push_back({reach[k], all[k]});
  });
  return all;
}

// Each kernel's totals are multiplied by its error. What changes of clock take has no error.
SavingDraws PlanIntervals::draws(const Plan& plan, const SwitchModel& switching) {
  const auto changes = changes_of_kernels(trace_, model_, grid_, plan);
  std::vector<ErrorReach> reach;
  for (const KernelClockChange& change : changes) reach.push_back(change.reach);
  const auto factors = factors_of(reach);
  SavingDraws draws(models_.size() * draws_per_model);
  parallel_for(models_.size(), [&](std::size_t m) {
    Cost rest;
    const std::vector<Cost> kernels = kernel_costs(models_[m], plan, switching, rest);
    std::array<Cost, draws_per_model> sums;
    sums.fill(rest);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (!factors[k]) {
        for (Cost& sum : sums) add(sum, kernels[k]);
        continue;
      }
      const Cost* const of_model = factors[k]->data() + m * draws_per_model;
      const double usual_s = bases_of_kernels_[m][k].time_s;
      for (std::size_t d = 0; d < draws_per_model; ++d)
        add(sums[d], {changes[k].band.cut(kernels[k].time_s * of_model[d].time_s, usual_s),
                      kernels[k].energy_j * of_model[d].energy_j});
    }
    for (std::size_t d = 0; d < draws_per_model; ++d)
      draws.set(m * draws_per_model + d, counted(sums[d]), bases_[m]);
  });
  return draws;
}

SavingInterval PlanIntervals::drawn(const Plan& plan) { return draws(plan).widened_interval(); }

void PlanIntervals::set_change_errors(std::vector<Cost> logarithms) {
  draws_ = std::move(logarithms);
  known_factors_.assign(known_factors_.size(), {});
}

SavingInterval saving_interval(const Trace& trace, const GpuModel& model,
                               const std::vector<GpuModel>& models, const ClockGrid& grid,
                               const Plan& plan, const ModelErrors& errors,
                               const SwitchModel& switching, double host_power_w) {
  return PlanIntervals(trace, model, models, grid, errors, switching, host_power_w).of(plan);
}

SavingInterval cell_interval(std::span<const Cost> by_models, const Cost& measured,
                             const ModelErrors& errors, std::mt19937_64& random) {
  std::vector<double> time, energy;
  for (const Cost& cost : by_models) {
    for (std::size_t d = 0; d < draws_per_model; ++d) {
      const Cost error = ErrorDraw(errors, random).logarithms(random);
      time.push_back(percent * (std::log(cost.time_s / measured.time_s) + error.time_s));
      energy.push_back(percent * (std::log(cost.energy_j / measured.energy_j) + error.energy_j));
    }
  }
  return {interval_of(widened(std::move(time))), interval_of(widened(std::move(energy)))};
}

}  // namespace rubato
