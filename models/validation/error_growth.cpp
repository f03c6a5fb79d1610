#include "models/validation/error_growth.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "models/validation/errors.hpp"

namespace rubato {

namespace {

enum class End { below, above };

const char* name_of(End end) { return end == End::below ? "below" : "above"; }

std::string growth_key(End end, const char* quantity) {
  return fmt::format("{}_fitted_{}_growth", name_of(end), quantity);
}

std::string tested_key(End end) { return fmt::format("{}_fitted_tested", name_of(end)); }

double core_mhz_of(const GpuSpec& spec, const SweepPoint& point) {
  return point.clock.core_mhz.value_or(spec.mem_states[index(point.clock.mem)].boost_mhz);
}

struct Divided {
  Sweep fitted, beyond;
};

// Divides a sweep: the clocks at one end that hold a fifth of the points, and the rest. Kernels
// with fewer than two points in the rest are left out of both.
Divided without_end(const GpuSpec& spec, const Sweep& sweep, End end) {
  constexpr std::size_t part = 5;
  std::vector<double> clocks;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points) clocks.push_back(core_mhz_of(spec, point));
  }
  std::ranges::sort(clocks);
  if (clocks.empty()) return {};
  const double last = clocks[end == End::below ? (clocks.size() - 1) / part
                                               : clocks.size() - 1 - (clocks.size() - 1) / part];
  const auto is_beyond = [&](const SweepPoint& point) {
    const double mhz = core_mhz_of(spec, point);
    return end == End::below ? mhz <= last : mhz >= last;
  };
  Divided divided{sweep, sweep};
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    std::erase_if(divided.fitted.kernels[k].points, is_beyond);
    std::erase_if(divided.beyond.kernels[k].points,
                  [&](const SweepPoint& point) { return !is_beyond(point); });
  }
  constexpr std::size_t enough = 2;
  std::vector<std::string> unfitted;
  for (const SweepKernel& kernel : divided.fitted.kernels) {
    if (kernel.points.size() < enough) unfitted.push_back(kernel.name);
  }
  for (Sweep* side : {&divided.fitted, &divided.beyond})
    std::erase_if(side->kernels, [&](const SweepKernel& kernel) {
      return std::ranges::find(unfitted, kernel.name) != unfitted.end();
    });
  return divided;
}

double inside_90(double shared, double own) {
  constexpr double of_gaussian = 1.645;
  return std::hypot(of_gaussian * shared, own_90_pct * own);
}

void learn_end(const GpuSpec& frame, const Sweep& sweep, const ModelErrors& errors,
               const SweepFitOptions& fit, End end, GpuSpec& spec) {
  const Divided divided = without_end(frame, sweep, end);
  if (swept_core_mhz(divided.fitted).empty()) return;
  const GpuSpec fitted = calibrate_sweep(frame, divided.fitted, fit).spec;
  const auto [least, most, kernels, points] = *fitted.fitted_range;
  std::vector<FarError> time, energy;
  double tested = 0.0;
  for (const ValidatedPoint& point :
       validate(fitted, divided.beyond, {.holdout = Holdout::known, .fit = {}})) {
    const double mhz = core_mhz_of(frame, point.measured);
    const double beyond = std::log(end == End::below ? least / mhz : mhz / most);
    if (!(beyond > 0.0)) continue;
    tested = std::max(tested, beyond);
    if (const auto error = point.time_error()) time.push_back({beyond, -std::log1p(*error)});
    // In sweeps without times power stands for energy.
    const auto energy_error = point.energy_error() ? point.energy_error() : point.power_error();
    if (energy_error) energy.push_back({beyond, -std::log1p(*energy_error)});
  }
  for (const auto& [quantity, far, inside] :
       {std::tuple{"time", &time, inside_90(errors.shared.time, errors.own.time)},
        {"energy", &energy, inside_90(errors.shared.energy, errors.own.energy)}}) {
    if (!far->empty() && inside > 0.0 && are_learned(spec, quantity))
      spec.fit_errors[growth_key(end, quantity)] = growth_of(*far, inside);
  }
  if (tested > 0.0) spec.fit_errors[tested_key(end)] = tested;
}

// Growth with which nine in ten errors beyond the fitted clocks of twelve shipped specs stay below
// the line of growth_of, every GPU counted alike. Of a GPU that was left out of the twelve, 87 to
// 89 % of errors did (docs/gpus.md, "Beyond the fitted clocks").
RelativeErrors typical_growth(End end) {
  return end == End::below ? RelativeErrors{16.0, 13.0} : RelativeErrors{3.2, 24.0};
}

RelativeErrors growth_beyond(const GpuSpec& spec, End end, double beyond) {
  const auto entry_or = [&](const std::string& key, double other) {
    const auto entry = spec.fit_errors.find(key);
    return entry == spec.fit_errors.end() ? other : entry->second;
  };
  const double tested = std::min(beyond, entry_or(tested_key(end), 0.0));
  const auto of = [&](const char* quantity, double typical) {
    if (!are_learned(spec, quantity)) return 1.0;
    const double found = entry_or(growth_key(end, quantity), typical);
    return 1.0 + found * tested + std::max(found, typical) * (beyond - tested);
  };
  const RelativeErrors typical = typical_growth(end);
  return {of("time", typical.time), of("energy", typical.energy)};
}

}  // namespace

double growth_of(const std::vector<FarError>& errors, double inside_90) {
  constexpr double share = 0.9;
  std::vector<double> needed;
  for (const FarError& far : errors)
    needed.push_back((std::abs(far.error) / inside_90 - 1.0) / far.beyond);
  std::ranges::sort(needed);
  const auto at =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(needed.size()))) - 1;
  return std::max(0.0, needed[at]);
}

void learn_error_growth(const GpuSpec& frame, const Sweep& sweep, const ModelErrors& errors,
                        const SweepFitOptions& fit, GpuSpec& spec, const RunContext& context) {
  SweepFitOptions without_draws = fit;
  without_draws.ensemble = 0;
  for (const End end : {End::below, End::above}) {
    if (!context.stop_requested()) learn_end(frame, sweep, errors, without_draws, end, spec);
  }
}

RelativeErrors growth_at(const GpuSpec& spec, double core_mhz) {
  if (!spec.fitted_range || !(core_mhz > 0.0)) return {1.0, 1.0};
  const auto& [least, most, kernels, points] = *spec.fitted_range;
  if (core_mhz < least) return growth_beyond(spec, End::below, std::log(least / core_mhz));
  if (core_mhz > most) return growth_beyond(spec, End::above, std::log(core_mhz / most));
  return {1.0, 1.0};
}

}  // namespace rubato
