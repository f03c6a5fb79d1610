#include "models/kernel/model.hpp"

#include <algorithm>
#include <cmath>

#include "models/kernel/cell_formulas.hpp"
#include "models/kernel/cells.hpp"

namespace rubato {

namespace {

// One clock at a time takes two lanes, which every machine has.
using Lanes = lanes::Two;

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
  return formulas::relative_voltage(spec, mem.voltage_scale, lanes::all<Lanes>(core_mhz))[0];
}

double dram_bandwidth(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const Lanes mhz = lanes::all<Lanes>(core_mhz);
  return 1.0 / formulas::bandwidth_at(spec, formulas::memory_of(mem), mhz).s_per_byte[0];
}

double idle_power_w(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const Lanes mhz = lanes::all<Lanes>(core_mhz);
  const Lanes v = formulas::relative_voltage(spec, mem.voltage_scale, mhz);
  return formulas::idle_power_w(spec, formulas::memory_of(mem), mhz, v * v)[0];
}

double waiting_power_w(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  if (!spec.waiting) return idle_power_w(spec, mem, core_mhz);
  constexpr double least_w = 1.0;
  const std::vector<double>&at = spec.waiting->core_mhz, &power_w = spec.waiting->power_w;
  const auto above = static_cast<std::size_t>(std::ranges::upper_bound(at, core_mhz) - at.begin());
  double own_w = above == 0 ? power_w.front() : power_w.back();
  if (above > 0 && above < at.size())
    own_w = std::lerp(power_w[above - 1], power_w[above],
                      (core_mhz - at[above - 1]) / (at[above] - at[above - 1]));
  const MemState& usual = spec.mem_states[index(spec.default_clock.mem)];
  return std::max(own_w + mem.base_power_w - usual.base_power_w, least_w);
}

ClockState clock_state(const GpuSpec& spec, const MemState& mem, double core_mhz) {
  const auto state =
      formulas::state_at(spec, formulas::memory_of(mem), lanes::all<Lanes>(core_mhz));
  return {.core_mhz = core_mhz,
          .s_per_cycle = state.s_per_cycle[0],
          .s_per_byte = state.s_per_byte[0],
          .log2_balance = state.log2_balance[0],
          .dram_bytes_per_s = 1.0 / state.s_per_byte[0],
          .idle_w = state.idle_w[0],
          .squared_voltage = state.squared_voltage[0],
          .dram_j_per_byte = spec.shared.dram_nj_per_byte * 1e-9,
          .overlap_exponent = spec.shared.overlap_exponent};
}

ClockState clock_state(const GpuSpec& spec, const ClockPair& clock, bool applied_clock) {
  return clock_state(
      spec, spec.mem_states[index(clock.mem)],
      applied_clock ? applied_core_mhz(spec, clock) : effective_core_mhz(spec, clock));
}

OperatingPoint unlimited_point(const ClockState& state, const KernelCoefficients& kernel) {
  const formulas::State<Lanes> at{.core_mhz = lanes::all<Lanes>(state.core_mhz),
                                  .s_per_cycle = lanes::all<Lanes>(state.s_per_cycle),
                                  .s_per_byte = lanes::all<Lanes>(state.s_per_byte),
                                  .log2_balance = lanes::all<Lanes>(state.log2_balance),
                                  .idle_w = lanes::all<Lanes>(state.idle_w),
                                  .squared_voltage = lanes::all<Lanes>(state.squared_voltage)};
  const auto point = formulas::point_at(
      at, formulas::launch_of(kernel, state.overlap_exponent, state.dram_j_per_byte));
  return {point.time_s[0], point.energy_j[0], state.core_mhz, false};
}

bool within_limit(const GpuSpec& spec, const KernelCoefficients& kernel,
                  const OperatingPoint& point, double power_limit_w) {
  return point.energy_j <= formulas::regulated_power_w(spec, kernel, power_limit_w) * point.time_s;
}

OperatingPoint regulated_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                               const MemState& mem, double power_limit_w) {
  const RegulatedLaunch launch{formulas::launch_of(kernel, spec, power_limit_w),
                               formulas::memory_of(mem)};
  OperatingPoint found;
  table_cells().front().regulate(spec, {&launch, 1}, &found);
  return found;
}

OperatingPoint limited_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                             const MemState& mem, const ClockState& state, double power_limit_w) {
  const OperatingPoint point = unlimited_point(state, kernel);
  if (within_limit(spec, kernel, point, power_limit_w)) return point;
  return regulated_point(spec, kernel, mem, power_limit_w);
}

OperatingPoint operating_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                               const ClockPair& clock, double power_limit_w) {
  return limited_point(spec, kernel, spec.mem_states[index(clock.mem)],
                       clock_state(spec, clock, false),
                       clock.power_limit_w.value_or(power_limit_w));
}

OperatingPoint applied_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                             const ClockPair& clock) {
  return limited_point(spec, kernel, spec.mem_states[index(clock.mem)],
                       clock_state(spec, clock, true), spec.power_limit.limit_w);
}

}  // namespace rubato
