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

OperatingPoint limited_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                             const MemState& mem, const ClockState& state, double power_limit_w) {
  const double limit_w = power_limit_w * spec.power_limit.regulated_frac * kernel.limit_scale;
  OperatingPoint point = unlimited_point(state, kernel);
  if (point.energy_j <= limit_w * point.time_s) return point;

  // Power rises with the core clock, so bisection finds where it meets the limit.
  // Where even the lowest clock draws too much, the lowest clock it is.
  double high_mhz = state.core_mhz;
  double low_mhz = std::min(spec.core.min_mhz, high_mhz);
  constexpr int halvings = 40;  // 2000 MHz / 2^40: far below any effect
  for (int i = 0; i < halvings; ++i) {
    const double middle_mhz = 0.5 * (low_mhz + high_mhz);
    const OperatingPoint middle = unlimited_point(clock_state(spec, mem, middle_mhz), kernel);
    (middle.energy_j > limit_w * middle.time_s ? high_mhz : low_mhz) = middle_mhz;
  }
  point = unlimited_point(clock_state(spec, mem, low_mhz), kernel);
  point.power_limited = true;
  return point;
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
