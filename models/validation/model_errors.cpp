#include "models/validation/model_errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/statistics.hpp"

namespace rubato {

namespace {

constexpr RelativeErrors never_fitted{0.10, 0.15};

constexpr double own_deviation = 1.4142;  // of t with own_freedom: standard deviation over scale

double magnitude_below(std::vector<double> values, double share) {
  for (double& value : values) value = std::abs(value);
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Parts {
  double shared = 0.0, own = 0.0;
};

// @param by_clock  residuals of all kernels at each clock, as logarithms
Parts parts_of(const std::vector<std::vector<double>>& by_clock) {
  constexpr std::size_t enough_kernels = 4;
  std::vector<double> all, own;
  double centres = 0.0, expected = 0.0, clocks = 0.0;
  for (const std::vector<double>& residuals : by_clock) {
    all.insert(all.end(), residuals.begin(), residuals.end());
    if (residuals.size() < enough_kernels) continue;
    const auto count = static_cast<double>(residuals.size());
    const double centre = median(residuals);
    for (const double residual : residuals)
      own.push_back((residual - centre) * std::sqrt(count / (count - 1.0)));
    centres += centre * centre;
    expected += 0.5 * std::numbers::pi / count;
    ++clocks;
  }
  if (all.empty()) return {};
  if (clocks < 1.0) {
    const double each = magnitude_below(all, 0.9) / std::numbers::sqrt2;
    return {each / 1.645, each / own_90_pct};
  }
  // A median of n residuals scatters itself: pi / 2 / n times the variance of their bulk.
  const double bulk = magnitude_below(own, 0.5) / 0.741;
  const double shared = (centres - expected * bulk * bulk) / clocks;
  return {std::sqrt(std::max(shared, 0.0)), magnitude_below(own, 0.9) / own_90_pct};
}

template <class Error>
Parts parts_of(std::span<const ValidatedPoint> points, Error error) {
  std::map<std::tuple<std::uint32_t, double, double>, std::vector<double>> by_clock;
  for (const ValidatedPoint& point : points) {
    const SweepPoint& m = point.measured;
    if (const std::optional<double> e = error(point))
      by_clock[{m.clock.mem.value, m.clock.core_mhz.value_or(0.0), m.power_cap_w.value_or(0.0)}]
          .push_back(-std::log1p(*e));
  }
  std::vector<std::vector<double>> residuals;
  for (auto& [clock, values] : by_clock) residuals.push_back(std::move(values));
  return parts_of(residuals);
}

std::optional<double> found(const GpuSpec& spec, std::string_view key) {
  const auto entry = spec.fit_errors.find(std::string(key));
  if (entry == spec.fit_errors.end()) return std::nullopt;
  return entry->second / 100.0;
}

Parts halves_of(double sigma) {
  return {sigma / std::numbers::sqrt2, sigma / std::numbers::sqrt2 / own_deviation};
}

// As write_errors wrote them, else halves of the variance of mean errors on points held out.
std::optional<Parts> learned_parts(const GpuSpec& spec, const char* what) {
  const auto shared = found(spec, fmt::format("shared_{}_pct", what));
  const auto own = found(spec, fmt::format("own_{}_pct", what));
  if (shared && own) return Parts{*shared, *own};
  constexpr double sigma_per_mean_error = 1.2533;  // of a Gaussian, sqrt(pi / 2)
  for (const char* pattern : {"k_fold_{}_mape_pct", "forward_sweep_{}_mape_pct"}) {
    if (const auto mean = found(spec, fmt::format(fmt::runtime(pattern), what)))
      return halves_of(sigma_per_mean_error * *mean);
  }
  return std::nullopt;
}

void write_parts(const Parts& parts, const char* what, GpuSpec& spec) {
  spec.fit_errors[fmt::format("shared_{}_pct", what)] = 100.0 * parts.shared;
  spec.fit_errors[fmt::format("own_{}_pct", what)] = 100.0 * parts.own;
}

// "plans_time_scale_3"; whole sweeps are "plans_time_scale_many".
std::string scale_key(const char* what, const char* quantity, std::size_t points) {
  return fmt::format("{}_{}_scale_{}", what, quantity,
                     points == 0 ? std::string("many") : std::to_string(points));
}

// Scales of kernels with as many points as the spec's, or fewer: campaigns were played with 1, 3
// and 5 points, and with whole sweeps.
IntervalScales scales_of_kernels(const GpuSpec& spec) {
  constexpr double between = 10.0;  // nearer to whole sweeps than to five points
  constexpr std::size_t whole = 0, most_of_few = 5;
  const auto entry_or = [&](const std::string& key, double other) {
    const auto entry = spec.fit_errors.find(key);
    return entry == spec.fit_errors.end() ? other : entry->second;
  };
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const double points = entry_or(kernel_points_key, unknown);
  const bool all_points = points >= entry_or(scale_many_points_key, unknown);
  std::size_t played = 1;
  for (const std::size_t few : {std::size_t{3}, most_of_few}) {
    if (points >= static_cast<double>(few)) played = few;
  }
  const auto scale = [&](const char* what, const char* quantity) {
    const auto of = [&](std::size_t p) { return entry_or(scale_key(what, quantity, p), 1.0); };
    if (all_points) return of(whole);
    return points >= between ? std::max(of(most_of_few), of(whole)) : of(played);
  };
  return {{scale("cells", "time"), scale("cells", "energy")},
          {scale("plans", "time"), scale("plans", "energy")}};
}

}  // namespace

ModelErrors estimate_errors(std::span<const ValidatedPoint> points) {
  const Parts time = parts_of(points, [](const auto& point) { return point.time_error(); });
  Parts energy = parts_of(points, [](const auto& point) { return point.energy_error(); });
  return {{time.shared, energy.shared}, {time.own, energy.own}};
}

void write_errors(const ModelErrors& errors, GpuSpec& spec) {
  write_parts({errors.shared.time, errors.own.time}, "time", spec);
  write_parts({errors.shared.energy, errors.own.energy}, "energy", spec);
}

void drop_reported_errors(GpuSpec& spec) {
  for (const char* what : {"time", "energy"}) {
    if (const auto parts = learned_parts(spec, what)) write_parts(*parts, what, spec);
  }
  std::erase_if(spec.fit_errors, [](const auto& error) {
    return error.first.ends_with("_mape_pct") || error.first.ends_with("_mae_points");
  });
}

void raise_errors(std::span<const ValidatedPoint> points, GpuSpec& spec) {
  const ModelErrors found = estimate_errors(points);
  const auto raise = [&](const char* what, double never, double shared, double own) {
    const Parts known = learned_parts(spec, what).value_or(halves_of(never));
    write_parts({std::max(known.shared, shared), std::max(known.own, own)}, what, spec);
  };
  raise("time", never_fitted.time, found.shared.time, found.own.time);
  raise("energy", never_fitted.energy, found.shared.energy, found.own.energy);
}

void write_scales(const IntervalScales& scales, std::size_t points, GpuSpec& spec) {
  for (const auto& [what, of] : {std::pair{"cells", &scales.cells}, {"plans", &scales.plans}}) {
    spec.fit_errors[scale_key(what, "time", points)] = of->time;
    spec.fit_errors[scale_key(what, "energy", points)] = of->energy;
  }
}

// The quantile of t by its expansion in 1 / (degrees of freedom). It is 27 % low for one of them, 5
// % for two, 2 % for three. Source: Abramowitz and Stegun, 26.7.5.
double few_draws_factor(std::size_t count) {
  constexpr double z = 1.6449;
  if (count < 2) return 1.0;
  const auto n = static_cast<double>(count);
  const double f = n - 1.0;
  const double first = z * (z * z + 1.0) / 4.0;
  const double second = z * (5.0 * std::pow(z, 4) + 16.0 * z * z + 3.0) / 96.0;
  return std::sqrt(1.0 + 1.0 / n) * (z + first / f + second / (f * f)) / z;
}

ModelErrors model_errors(const GpuSpec& spec) {
  const Parts time = learned_parts(spec, "time").value_or(halves_of(never_fitted.time));
  const Parts energy = learned_parts(spec, "energy").value_or(halves_of(never_fitted.energy));
  const auto distinct = spec.fit_errors.find(distinct_kernels_key);
  const double few = few_draws_factor(distinct == spec.fit_errors.end()
                                          ? spec.kernels.size()
                                          : static_cast<std::size_t>(distinct->second));
  return {
      {time.shared, energy.shared}, {few * time.own, few * energy.own}, scales_of_kernels(spec)};
}

bool are_learned(const GpuSpec& spec, const char* quantity) {
  return learned_parts(spec, quantity).has_value();
}

RelativeErrors cell_errors(const GpuSpec& spec) {
  const ModelErrors errors = model_errors(spec);
  return {std::hypot(errors.shared.time, own_deviation * errors.own.time),
          std::hypot(errors.shared.energy, own_deviation * errors.own.energy)};
}

}  // namespace rubato
