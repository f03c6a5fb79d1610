#include "models/validation/errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "models/gpu/ensemble.hpp"
#include "models/validation/model_errors.hpp"

namespace rubato {

namespace {

constexpr std::uint64_t seed = 20260113;

std::optional<double> relative_error(double predicted, const std::optional<double>& measured) {
  return measured ? std::optional(predicted / *measured - 1.0) : std::nullopt;
}

std::optional<bool> inside(const std::optional<IntervalEnds>& ends,
                           const std::optional<double>& value) {
  if (!ends || !value) return std::nullopt;
  return ends->low <= *value && *value <= ends->high;
}

// A sweep split into what a fit sees and what it is tested on.
struct Split {
  Sweep seen, held_out;
};

template <class IsHeldOut>
Split split(const Sweep& sweep, IsHeldOut&& held_out) {
  Split out{sweep, sweep};
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    auto& seen = out.seen.kernels[k].points;
    auto& tested = out.held_out.kernels[k].points;
    seen.clear();
    tested.clear();
    const auto& points = sweep.kernels[k].points;
    for (std::size_t i = 0; i < points.size(); ++i)
      (held_out(k, i) ? tested : seen).push_back(points[i]);
  }
  return out;
}

// Adds predictions of all held-out points of kernels that the spec has; with `draws` also those of
// its ensemble.
void test(const GpuSpec& spec, const Sweep& held_out, bool draws,
          std::vector<ValidatedPoint>& results) {
  std::vector<GpuSpec> members;
  for (std::size_t m = 0; draws && m < spec.ensemble.size(); ++m)
    members.push_back(ensemble_member(spec, m));
  for (const SweepKernel& kernel : held_out.kernels) {
    const auto known = std::ranges::find(spec.kernels, kernel.name, &CalibratedKernel::name);
    if (known == spec.kernels.end()) continue;
    const auto k = static_cast<std::size_t>(known - spec.kernels.begin());
    const auto by = [&](const GpuSpec& of, const SweepPoint& point) {
      return predict(of, of.kernels[k].coefficients, point, held_out.applied_clocks);
    };
    for (const SweepPoint& point : kernel.points) {
      ValidatedPoint result{kernel.name, point, by(spec, point)};
      for (const GpuSpec& member : members) {
        const OperatingPoint at = by(member, point);
        result.drawn.push_back({at.time_s, at.energy_j});
      }
      results.push_back(std::move(result));
    }
  }
}

// The spec with these kernels only, and with draws of them where they are asked for.
GpuSpec with_only(GpuSpec spec, const Sweep& seen, const ValidationOptions& options) {
  if (options.draws) {
    const RelativeErrors errors = cell_errors(spec);
    return with_kernels(std::move(spec), seen, options.fit, errors.time, errors.energy);
  }
  spec.kernels = fit_kernels(spec, seen, options.fit);
  spec.ensemble.clear();
  return spec;
}

// Fits kernels to a few of their points and tests them on the rest.
void test_few_points(const GpuSpec& spec, const Sweep& sweep, const ValidationOptions& options,
                     std::vector<ValidatedPoint>& results) {
  std::vector<std::vector<std::size_t>> chosen;
  for (const SweepKernel& kernel : sweep.kernels)
    chosen.push_back(spread_points(spec, kernel, options.points));
  const Split parts = split(sweep, [&](std::size_t k, std::size_t i) {
    return std::ranges::find(chosen[k], i) == chosen[k].end();
  });
  test(with_only(spec, parts.seen, options), parts.held_out, options.draws, results);
}

// Fold of every point of a kernel, as even as can be, in random order.
std::vector<std::size_t> shuffled_folds(std::size_t count, std::size_t folds,
                                        std::mt19937_64& random) {
  std::vector<std::size_t> fold(count);
  for (std::size_t i = 0; i < count; ++i) fold[i] = i % folds;
  // As std::shuffle, but the same on every standard library.
  for (std::size_t i = count; i > 1; --i) std::swap(fold[i - 1], fold[random() % i]);
  return fold;
}

std::vector<std::vector<std::size_t>> random_folds(const Sweep& sweep, std::size_t folds) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::size_t>> fold;
  for (const SweepKernel& kernel : sweep.kernels)
    fold.push_back(shuffled_folds(kernel.points.size(), folds, random));
  return fold;
}

/// @param fold  of every point of every kernel
void test_folds(const GpuSpec& spec, const Sweep& sweep, const ValidationOptions& options,
                const std::vector<std::vector<std::size_t>>& fold,
                std::vector<ValidatedPoint>& results, const RunContext& context) {
  for (std::size_t f = 0; f < options.folds && !context.stop_requested(); ++f) {
    context.report({.done = f, .total = options.folds, .note = "folds"});
    Split parts = split(sweep, [&](std::size_t k, std::size_t i) { return fold[k][i] == f; });
    std::erase_if(parts.seen.kernels,
                  [](const SweepKernel& kernel) { return kernel.points.empty(); });
    const GpuSpec fitted = fits_gpu(options.holdout)
                               ? calibrate_sweep(spec, parts.seen, options.fit).spec
                               : with_only(spec, parts.seen, options);
    test(fitted, parts.held_out, options.draws, results);
  }
}

// Fold of every point: the range of core clocks that it lies in. Ranges hold equally many points,
// as far as points of one clock, which stay together, allow. Points that name no clock, as under
// power caps, are in none: they are never left out.
std::vector<std::vector<std::size_t>> clock_ranges(const Sweep& sweep, std::size_t ranges) {
  std::vector<double> clocks;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points) {
      if (point.clock.core_mhz) clocks.push_back(*point.clock.core_mhz);
    }
  }
  std::ranges::sort(clocks);
  std::vector<std::vector<std::size_t>> range(sweep.kernels.size());
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    for (const SweepPoint& point : sweep.kernels[k].points) {
      const auto rank = static_cast<std::size_t>(
          std::ranges::lower_bound(clocks, point.clock.core_mhz.value_or(0.0)) - clocks.begin());
      range[k].push_back(point.clock.core_mhz ? rank * ranges / clocks.size() : ranges);
    }
  }
  return range;
}

void test_kernels(const GpuSpec& spec, const Sweep& sweep, const ValidationOptions& options,
                  std::vector<ValidatedPoint>& results, const RunContext& context) {
  const std::vector<std::size_t> group = kernel_groups(sweep.kernels.size(), options.folds);
  const std::size_t groups = std::ranges::max(group) + 1;
  for (std::size_t g = 0; g < groups && !context.stop_requested(); ++g) {
    context.report({.done = g, .total = groups, .note = "groups of kernels"});
    Sweep others = sweep, left_out = sweep;
    others.kernels.clear();
    left_out.kernels.clear();
    for (std::size_t k = 0; k < sweep.kernels.size(); ++k)
      (group[k] == g ? left_out : others).kernels.push_back(sweep.kernels[k]);
    test_few_points(calibrate_sweep(spec, others, options.fit).spec, left_out, options, results);
  }
}

void test_power_caps(const GpuSpec& spec, const Sweep& sweep, const ValidationOptions& options,
                     std::vector<ValidatedPoint>& results) {
  double largest = 0.0;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      largest = std::max(largest, point.power_cap_w.value_or(0.0));
  }
  if (largest == 0.0) throw UsageError(fmt::format("{} has no power_cap_w", sweep.file));
  const Split parts = split(sweep, [&](std::size_t k, std::size_t i) {
    return sweep.kernels[k].points[i].power_cap_w.value_or(largest) < largest;
  });
  const GpuSpec fitted = calibrate_sweep(spec, parts.seen, options.fit).spec;
  test(fitted, parts.held_out, options.draws, results);
}

std::optional<double> inside_pct(std::span<const ValidatedPoint> points,
                                 std::optional<bool> (ValidatedPoint::*inside)() const) {
  double held = 0.0, all = 0.0;
  for (const ValidatedPoint& point : points) {
    const std::optional<bool> holds = (point.*inside)();
    if (!holds) continue;
    ++all;
    if (*holds) ++held;
  }
  return all > 0.0 ? std::optional(100.0 * held / all) : std::nullopt;
}

}  // namespace

std::vector<std::size_t> kernel_groups(std::size_t kernels, std::size_t groups) {
  if (std::min(groups, kernels) < 2)
    throw UsageError("one kernel cannot be left out of one kernel");
  std::mt19937_64 random(seed);
  return shuffled_folds(kernels, std::min(groups, kernels), random);
}

ErrorQuantiles error_quantiles(std::vector<double> errors) {
  if (errors.empty()) return {};
  for (double& error : errors) error = 100.0 * std::abs(error);
  std::ranges::sort(errors);
  const auto at = [&](double share) {
    return errors[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(errors.size() - 1)))];
  };
  return {.count = errors.size(),
          .mean = sum(errors) / static_cast<double>(errors.size()),
          .p50 = at(0.5),
          .p90 = at(0.9),
          .worst = errors.back()};
}

std::string_view name_of(Holdout value) noexcept {
  switch (value) {
    case Holdout::known: return "known";
    case Holdout::few_points: return "few-points";
    case Holdout::own_folds: return "own-folds";
    case Holdout::folds: return "folds";
    case Holdout::clocks: return "clocks";
    case Holdout::kernels: return "kernels";
    case Holdout::power_caps: break;
  }
  return "power-caps";
}

bool fits_gpu(Holdout holdout) noexcept {
  return holdout != Holdout::known && holdout != Holdout::few_points &&
         holdout != Holdout::own_folds;
}

std::optional<double> ValidatedPoint::time_error() const {
  return relative_error(predicted.time_s, measured.time_s);
}

std::optional<double> ValidatedPoint::power_error() const {
  return relative_error(predicted.energy_j / predicted.time_s, measured.power_w);
}

std::optional<double> ValidatedPoint::measured_j() const {
  if (!measured.time_s || !measured.power_w) return std::nullopt;
  return *measured.time_s * *measured.power_w;
}

std::optional<double> ValidatedPoint::energy_error() const {
  return relative_error(predicted.energy_j, measured_j());
}

std::optional<bool> ValidatedPoint::time_inside() const {
  return inside(time_90_s, measured.time_s);
}

std::optional<bool> ValidatedPoint::energy_inside() const {
  return inside(energy_90_j, measured_j());
}

std::vector<std::size_t> spread_points(const GpuSpec& spec, const SweepKernel& kernel,
                                       std::size_t count) {
  // Distances in the logarithm of both clocks and of the power limit; each range counts the same.
  constexpr std::size_t axes = 3;
  std::vector<std::array<double, axes>> at;
  for (const SweepPoint& point : kernel.points) {
    const MemState& mem = spec.mem_states[index(point.clock.mem)];
    at.push_back({std::log(point.clock.core_mhz.value_or(mem.boost_mhz)), std::log(mem.mem_mhz),
                  std::log(point.power_cap_w.value_or(spec.power_limit.limit_w))});
  }
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const auto by_axis = [&](const auto& a) { return a[axis]; };
    const double low = std::ranges::min(at, {}, by_axis)[axis],
                 high = std::ranges::max(at, {}, by_axis)[axis];
    for (auto& a : at) a[axis] = high > low ? (a[axis] - low) / (high - low) : 0.0;
  }
  std::vector<std::size_t> chosen;
  std::vector<double> distance(at.size(), 1e9);
  std::size_t next = static_cast<std::size_t>(
      std::ranges::max_element(at, {}, [](const auto& a) { return a[0] + a[1] + a[2]; }) -
      at.begin());
  while (chosen.size() < std::min(count, at.size())) {
    chosen.push_back(next);
    for (std::size_t i = 0; i < at.size(); ++i)
      distance[i] = std::min(distance[i], std::hypot(at[i][0] - at[next][0], at[i][1] - at[next][1],
                                                     at[i][2] - at[next][2]));
    next = static_cast<std::size_t>(std::ranges::max_element(distance) - distance.begin());
  }
  return chosen;
}

std::vector<ValidatedPoint> validate(const GpuSpec& spec, const Sweep& sweep,
                                     const ValidationOptions& options, const RunContext& context) {
  std::vector<ValidatedPoint> results;
  switch (options.holdout) {
    case Holdout::known: test(spec, sweep, options.draws, results); break;
    case Holdout::few_points: test_few_points(spec, sweep, options, results); break;
    case Holdout::own_folds:
    case Holdout::folds:
      test_folds(spec, sweep, options, random_folds(sweep, options.folds), results, context);
      break;
    case Holdout::clocks:
      test_folds(spec, sweep, options, clock_ranges(sweep, options.folds), results, context);
      break;
    case Holdout::kernels: test_kernels(spec, sweep, options, results, context); break;
    case Holdout::power_caps: test_power_caps(spec, sweep, options, results); break;
  }
  if (results.empty() && !context.stop_requested())
    throw UsageError(fmt::format("{}: no point is left to test", sweep.file),
                     {.in = {}, .hint = "fewer --points, or another way to hold points out"});
  return results;
}

ErrorSummary summarise(std::string group, std::span<const ValidatedPoint> points) {
  std::vector<double> time, power, energy;
  for (const ValidatedPoint& point : points) {
    if (const auto error = point.time_error()) time.push_back(*error);
    if (const auto error = point.power_error()) power.push_back(*error);
    if (const auto error = point.energy_error()) energy.push_back(*error);
  }
  ErrorSummary summary{std::move(group), error_quantiles(std::move(time)),
                       error_quantiles(std::move(power)), error_quantiles(std::move(energy))};
  summary.time.inside_pct = inside_pct(points, &ValidatedPoint::time_inside);
  summary.energy.inside_pct = inside_pct(points, &ValidatedPoint::energy_inside);
  return summary;
}

std::vector<ErrorSummary> summaries(const GpuSpec& spec, std::span<const ValidatedPoint> points) {
  double low = 1e9, high = 0.0;
  for (const ValidatedPoint& point : points) {
    const double mhz = point.measured.clock.core_mhz.value_or(high);
    low = std::min(low, mhz);
    high = std::max(high, mhz);
  }
  const auto third = [&](const ValidatedPoint& point) {
    const double mhz = point.measured.clock.core_mhz.value_or(high);
    return std::min(2, static_cast<int>(3.0 * (mhz - low) / std::max(high - low, 1.0)));
  };
  static constexpr std::array<const char*, 3> thirds{"low", "middle", "high"};
  std::map<std::string, std::vector<ValidatedPoint>> regions, kernels;
  for (const ValidatedPoint& point : points) {
    regions[fmt::format("memory {}, core {}", spec.mem_states[index(point.measured.clock.mem)].name,
                        thirds[static_cast<std::size_t>(third(point))])]
        .push_back(point);
    regions[point.predicted.power_limited ? "power limited" : "not power limited"].push_back(point);
    kernels["kernel " + point.kernel].push_back(point);
  }
  std::vector<ErrorSummary> out{summarise("all", points)};
  for (const auto& [name, group] : regions) out.push_back(summarise(name, group));
  const auto first_kernel = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& [name, group] : kernels) out.push_back(summarise(name, group));
  std::ranges::stable_sort(out.begin() + first_kernel, out.end(), std::ranges::greater{},
                           [](const ErrorSummary& s) { return s.energy.mean + s.power.mean; });
  return out;
}

}  // namespace rubato
