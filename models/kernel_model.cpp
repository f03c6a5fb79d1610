#include "models/kernel_model.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

namespace {

// Piecewise linear through ascending points; `x` must not lie beyond the last one.
double interpolate(const std::vector<double>& xs, const std::vector<double>& ys, double x) {
  const auto upper = std::ranges::upper_bound(xs, x);
  if (upper == xs.begin()) return ys.front();
  if (upper == xs.end()) return ys.back();
  const auto i = static_cast<std::size_t>(upper - xs.begin());
  const double share = (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
  return ys[i - 1] + share * (ys[i] - ys[i - 1]);
}

double requested_to_effective(const GpuSpec& spec, double core_mhz) {
  const auto& requested = spec.core.requested_mhz;
  if (requested.empty() || core_mhz >= requested.back()) return core_mhz;
  return interpolate(requested, spec.core.effective_mhz, core_mhz);
}

double regulated_power_w(const GpuSpec& spec, const KernelCoefficients& kernel,
                         double power_limit_w) {
  return power_limit_w * spec.power_limit.regulated_frac * kernel.limit_scale;
}

}  // namespace

double effective_core_mhz(const GpuSpec& spec, const ClockPair& clock) {
  const MemState& mem = spec.mem_states[index(clock.mem)];
  const double core_mhz = requested_to_effective(spec, clock.core_mhz.value_or(mem.boost_mhz));
  return std::min({core_mhz, mem.boost_mhz, mem.max_core_mhz.value_or(mem.boost_mhz)});
}

double applied_core_mhz(const GpuSpec& spec, const ClockPair& clock) {
  return clock.core_mhz ? requested_to_effective(spec, *clock.core_mhz)
                        : spec.mem_states[index(clock.mem)].boost_mhz;
}

double relative_voltage(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const auto& [xs, ys] = spec.voltage;
  double v = interpolate(xs, ys, core_mhz);
  if (core_mhz > xs.back() && xs.size() > 1) {
    const std::size_t n = xs.size();
    v += (core_mhz - xs[n - 1]) * (ys[n - 1] - ys[n - 2]) / (xs[n - 1] - xs[n - 2]);
  }
  return 1.0 + (v - 1.0) * mem.voltage_scale;
}

double dram_bandwidth(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const double memory_side = mem.bandwidth_gbs * 1e9;
  const CrossbarCurve& curve = spec.crossbar;
  const double step =
      curve.core_mhz.empty() ? 1.0 : interpolate(curve.core_mhz, curve.relative, core_mhz);
  const double core_side = spec.shared.crossbar_bytes_per_cycle * core_mhz * 1e6 * step;
  const double q = spec.shared.bandwidth_exponent;
  return memory_side * std::pow(1.0 + std::pow(memory_side / core_side, q), -1.0 / q);
}

double idle_power_w(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const double v = relative_voltage(spec, mem, core_mhz);
  return mem.base_power_w +
         (spec.shared.leakage_w + spec.shared.clock_w_per_mhz * core_mhz) * v * v;
}

ClockState clock_state(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const double v = relative_voltage(spec, mem, core_mhz);
  return {.core_mhz = core_mhz,
          .dram_bytes_per_s = dram_bandwidth(spec, mem, core_mhz),
          .idle_w = idle_power_w(spec, mem, core_mhz),
          .squared_voltage = v * v,
          .dram_j_per_byte = spec.shared.dram_nj_per_byte * 1e-9,
          .overlap_exponent = spec.shared.overlap_exponent};
}

OperatingPoint unlimited_point(const ClockState& state, const KernelCoefficients& kernel) {
  const double core_s = kernel.core_cycles / (state.core_mhz * 1e6);
  const double dram_s = kernel.dram_bytes / state.dram_bytes_per_s;
  const double p = state.overlap_exponent * kernel.overlap_scale;
  // Soft maximum, written so that the larger term cannot overflow.
  const auto [less_s, more_s] = std::minmax(core_s, dram_s);
  const double busy_s = more_s * std::pow(1.0 + std::pow(less_s / more_s, p), 1.0 / p);
  const double time_s = busy_s + kernel.fixed_s;
  const double energy_j = state.idle_w * kernel.idle_scale * time_s +
                          kernel.core_j * state.squared_voltage +
                          state.dram_j_per_byte * kernel.dram_bytes;
  return {time_s, energy_j, state.core_mhz, false};
}

bool within_limit(const GpuSpec& spec, const KernelCoefficients& kernel,
                  const OperatingPoint& point, double power_limit_w) {
  return point.energy_j <= regulated_power_w(spec, kernel, power_limit_w) * point.time_s;
}

OperatingPoint regulated_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                               const MemState& mem, double power_limit_w) {
  const double limit_w = regulated_power_w(spec, kernel, power_limit_w);
  const auto point_at = [&](double mhz) {
    return unlimited_point(clock_state(spec, mem, mhz), kernel);
  };
  const auto excess_w = [&](const OperatingPoint& p) { return p.energy_j / p.time_s - limit_w; };
  OperatingPoint below = point_at(spec.core.min_mhz);
  double low_mhz = below.core_mhz, low_w = excess_w(below);
  double high_mhz = spec.core.max_mhz, high_w = excess_w(point_at(high_mhz));
  constexpr double beyond_boost = 1.25;
  constexpr int most_beyond = 8;
  for (int i = 0; i < most_beyond && high_w <= 0.0; ++i)
    high_w = excess_w(point_at(high_mhz *= beyond_boost));
  // False position, halving the weight of a side that stays (Illinois).
  constexpr int most_steps = 60;
  constexpr double close_enough = 1e-12;
  int last_side = 0;
  for (int i = 0; i < most_steps && low_w < 0.0; ++i) {
    if (high_mhz - low_mhz < close_enough * high_mhz) break;
    const double mhz = (low_mhz * high_w - high_mhz * low_w) / (high_w - low_w);
    const OperatingPoint tried = point_at(mhz);
    const double tried_w = excess_w(tried);
    if (tried_w > 0.0) {
      if (last_side > 0) low_w *= 0.5;
      high_mhz = mhz;
      high_w = tried_w;
      last_side = 1;
    } else {
      if (last_side < 0) high_w *= 0.5;
      low_mhz = mhz;
      low_w = tried_w;
      below = tried;
      last_side = -1;
    }
    if (tried_w > -close_enough * limit_w && tried_w <= 0.0) break;
  }
  below.power_limited = true;
  return below;
}

OperatingPoint limited_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                             const MemState& mem, const ClockState& state, double power_limit_w) {
  const OperatingPoint point = unlimited_point(state, kernel);
  if (within_limit(spec, kernel, point, power_limit_w)) return point;
  return regulated_point(spec, kernel, mem, power_limit_w);
}

OperatingPoint operating_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                               const ClockPair& clock, double power_limit_w) {
  const MemState& mem = spec.mem_states[index(clock.mem)];
  return limited_point(spec, kernel, mem, clock_state(spec, mem, effective_core_mhz(spec, clock)),
                       power_limit_w);
}

OperatingPoint applied_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                             const ClockPair& clock) {
  const MemState& mem = spec.mem_states[index(clock.mem)];
  return limited_point(spec, kernel, mem, clock_state(spec, mem, applied_core_mhz(spec, clock)),
                       spec.power_limit.limit_w);
}

}  // namespace rubato
