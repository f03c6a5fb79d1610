#include "models/validation/measured_shapes.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "models/calibration/capture_fit.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

namespace {

// Classes whose kernels were measured to be alike: a lower core clock takes as much of their time.
// Position between none and all of it at three quarters of the clock, in the mean: products 0.96,
// batched ones 0.77, permute 0.7, softmax 0.2, reductions 0.6, embeddings 0.2, element-wise 0.02.
std::size_t kinds_alike(KernelClass kind) {
  switch (kind) {
    case KernelClass::gemm: return 1;
    case KernelClass::gemm_batched:
    case KernelClass::attention: return 2;
    case KernelClass::permute: return 3;
    case KernelClass::softmax: return 4;
    case KernelClass::reduce:
    case KernelClass::bias_reduce: return 5;
    case KernelClass::embedding: return 6;
    case KernelClass::layernorm:
    case KernelClass::residual_layernorm:
    case KernelClass::gelu:
    case KernelClass::elementwise:
    case KernelClass::bias:
    case KernelClass::optimizer:
    case KernelClass::memset:
    case KernelClass::memcpy: return 7;
    case KernelClass::communication:
    case KernelClass::other: break;
  }
  return 0;
}

// Of all shipped specs that were fitted to kernels, each set of kernels once.
const std::vector<KernelShape>& shipped_shapes() {
  static const std::vector<KernelShape> all = [] {
    std::vector<KernelShape> shapes;
    std::vector<std::vector<std::string>> known;
    for (const std::string& name : shipped_gpu_specs()) {
      const GpuSpec spec = load_gpu_spec(name);
      std::vector<std::string> kernels;
      for (const CalibratedKernel& kernel : spec.kernels) kernels.push_back(kernel.name);
      if (kernels.empty() || std::ranges::find(known, kernels) != known.end()) continue;
      known.push_back(std::move(kernels));
      std::ranges::copy(shapes_of(spec), std::back_inserter(shapes));
    }
    return shapes;
  }();
  return all;
}

// How much of what a lower core clock can add to a launch of a shape it adds, 0 to 1 (bandwidth
// that falls with the core clock adds more).
double position_of(const GpuSpec& spec, const KernelShape& shape) {
  constexpr double lower = 0.75;
  const KernelCoefficients launch = coefficients_of(spec, shape);
  const double usual_mhz = effective_core_mhz(spec, spec.default_clock);
  const MemState& memory = spec.mem_states[index(spec.default_clock.mem)];
  return (unlimited_point(clock_state(spec, memory, lower * usual_mhz), launch).time_s - 1.0) /
         (1.0 / lower - 1.0);
}

}  // namespace

std::vector<KernelShape> shapes_of(const GpuSpec& spec) {
  if (!captured_core_mhz(spec).empty()) return {};
  const ClockState state = clock_state(spec, spec.default_clock, false);
  std::vector<KernelShape> shapes;
  for (const CalibratedKernel& kernel : spec.kernels) {
    const KernelCoefficients& c = kernel.coefficients;
    const OperatingPoint point = unlimited_point(state, c);
    const double core_s = c.core_cycles * state.s_per_cycle,
                 dram_s = c.dram_bytes * state.s_per_byte;
    shapes.push_back({.gpu = spec.name,
                      .kind = kernel.kind,
                      .lean = core_s / (core_s + dram_s),
                      .fixed = c.fixed_s / point.time_s,
                      .overlap = state.overlap_exponent * c.overlap_scale,
                      .idle = c.idle_scale,
                      .of_limit = point.energy_j / point.time_s / spec.power_limit.limit_w});
  }
  return shapes;
}

KernelCoefficients coefficients_of(const GpuSpec& spec, const KernelShape& shape) {
  constexpr double little = 1e-6;      // of the time: coefficients are above 0
  constexpr double least_core = 0.05;  // of the energy
  const ClockState state = clock_state(spec, spec.default_clock, false);
  const double lean = std::clamp(shape.lean, little, 1.0 - little), p = shape.overlap;
  const double sum_s =
      (1.0 - shape.fixed) / std::pow(std::pow(lean, p) + std::pow(1.0 - lean, p), 1.0 / p);
  KernelCoefficients launch{.core_cycles = lean * sum_s / state.s_per_cycle,
                            .dram_bytes = (1.0 - lean) * sum_s / state.s_per_byte,
                            .fixed_s = std::max(shape.fixed, little),
                            .core_j = 0.0,
                            .limit_scale = 1.0,
                            .overlap_scale = p / state.overlap_exponent,
                            .idle_scale = shape.idle};
  const double energy_j = shape.of_limit * spec.power_limit.limit_w;  // of one second
  const double rest_j = shape.idle * state.idle_w + launch.dram_bytes * state.dram_j_per_byte;
  launch.core_j = std::max(energy_j - rest_j, least_core * energy_j) / state.squared_voltage;
  return launch;
}

bool has_own_shapes(const GpuSpec& spec) {
  return captured_core_mhz(spec).empty()
             ? !spec.kernels.empty()
             : std::ranges::find(shipped_shapes(), spec.name, &KernelShape::gpu) !=
                   shipped_shapes().end();
}

ShapePriors::ShapePriors(const GpuSpec& spec) {
  constexpr double own_gpu = 4.0, spread = 0.15;
  constexpr std::size_t leans = 17;
  for (const KernelShape& shape : shipped_shapes()) {
    if (shape.gpu != spec.name || !captured_core_mhz(spec).empty()) shapes_.push_back(shape);
  }
  std::ranges::copy(shapes_of(spec), std::back_inserter(shapes_));
  std::map<std::string, double> kernels;
  for (const KernelShape& shape : shapes_) kernels[shape.gpu] += 1.0;
  for (std::size_t i = 0; i < leans; ++i) {
    KernelShape& even = shapes_.emplace_back();
    even.lean = static_cast<double>(i) / static_cast<double>(leans - 1);
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    order.emplace_back(position_of(spec, shapes_[i]), i);
  std::ranges::stable_sort(order, {}, &std::pair<double, std::size_t>::first);
  for (std::size_t k = 0; k < all_names<KernelClass>().size(); ++k) {
    const std::size_t kind = kinds_alike(static_cast<KernelClass>(k));
    const auto is_alike = [&](const KernelShape& shape) { return kind == kinds_alike(shape.kind); };
    // Classes of another GPU's kernels help little: half of the weight.
    const bool own_classes = std::ranges::any_of(shapes_, [&](const KernelShape& shape) {
      return shape.gpu == spec.name && is_alike(shape);
    });
    const double of_alike = kind == 0 ? 0.0 : own_classes ? 0.99 : 0.5;  // unlike: all kinds
    const auto weight = [&](const KernelShape& shape) {
      return shape.gpu.empty()
                 ? 0.0
                 : (shape.gpu == spec.name ? own_gpu : 1.0) / std::sqrt(kernels[shape.gpu]);
    };
    double alike = 0.0, all = 0.0;
    for (const KernelShape& shape : shapes_) {
      all += weight(shape);
      if (is_alike(shape)) alike += weight(shape);
    }
    std::vector<Weighted>& of = of_class_.emplace_back();
    double until = 0.0;
    for (const auto& [position, i] : order) {
      const KernelShape& shape = shapes_[i];
      const double share = (1.0 - of_alike) * weight(shape) / all +
                           (is_alike(shape) && kind != 0 ? of_alike * weight(shape) / alike : 0.0);
      until += shape.gpu.empty() ? spread / static_cast<double>(leans) : (1.0 - spread) * share;
      of.push_back({i, position, until});
    }
  }
}

const KernelShape& ShapePriors::at(KernelClass kind, double quantile,
                                   std::optional<double> position) const {
  return shapes_[found(kind, quantile, position).shape];
}

KernelShape ShapePriors::with_any_power(KernelClass kind, double quantile,
                                        double power_quantile) const {
  const Weighted& like = found(kind, quantile, {});
  KernelShape shape = shapes_[like.shape];
  const std::vector<Weighted>& of = of_class_[static_cast<std::size_t>(KernelClass::other)];
  const auto [below, above] = near(of, like.position);
  std::vector<std::pair<const KernelShape*, double>> alike;  // with their weights
  double until = 0.0, all = 0.0;
  for (const Weighted& one : of) {
    if (one.until > below && until < above && !shapes_[one.shape].gpu.empty()) {
      alike.emplace_back(&shapes_[one.shape], one.until - until);
      all += alike.back().second;
    }
    until = one.until;
  }
  if (alike.empty()) return shape;
  std::ranges::stable_sort(alike, {}, [](const auto& one) { return one.first->of_limit; });
  auto power = alike.begin();
  for (double sum = power->second; sum < power_quantile * all && power + 1 != alike.end();)
    sum += (++power)->second;
  shape.of_limit = power->first->of_limit;
  shape.idle = power->first->idle;
  return shape;
}

// Sums of the weights up to the patterns that follow the core clock about as much as a position:
// the narrowest range of positions around it with enough of them.
std::pair<double, double> ShapePriors::near(const std::vector<Weighted>& of, double position) {
  constexpr double nearest = 0.05, enough = 0.1;
  const auto until = [&](double place) {
    const auto next = std::ranges::lower_bound(of, place, {}, &Weighted::position);
    return next == of.begin() ? 0.0 : std::prev(next)->until;
  };
  const double middle = std::clamp(position, 0.0, 1.0);
  double range = nearest;
  while (until(middle + range) - until(middle - range) < enough && range < 1.0) range *= 2.0;
  return {until(middle - range), until(middle + range)};
}

const ShapePriors::Weighted& ShapePriors::found(KernelClass kind, double quantile,
                                                std::optional<double> position) const {
  const std::vector<Weighted>& of = of_class_[static_cast<std::size_t>(kind)];
  if (position) {
    const auto [below, above] = near(of, *position);
    quantile = below + quantile * (above - below);
  }
  const auto next = std::ranges::lower_bound(of, quantile, {}, &Weighted::until);
  return next == of.end() ? of.back() : *next;
}

}  // namespace rubato
