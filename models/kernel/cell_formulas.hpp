#pragma once
// The formulas of docs/models.md, section 2, and the only place that has them. V is a SIMD vector:
// a function evaluates as many clocks at once as V has lanes. model.cpp asks for one launch at a
// time, cells.cpp fills tables. K is double where all lanes share a kernel or memory state, else V.

#include <algorithm>
#include <limits>
#include <vector>

#include "common/vectors/lanes.hpp"
#include "models/gpu/spec.hpp"

namespace rubato::formulas {

/// A memory state as the formulas need it.
template <class K>
struct Memory {
  K bytes_per_s;  ///< what the memory can deliver
  K base_power_w;
  K voltage_scale;
};

/// What a GPU offers any kernel at one memory state and core clock.
template <class V>
struct State {
  V core_mhz;
  V s_per_cycle;
  V s_per_byte;
  V log2_balance;  ///< log2 of s_per_cycle / s_per_byte
  V idle_w;
  V squared_voltage;
};

/// A kernel as the formulas need it.
template <class K>
struct Launch {
  K core_cycles;
  K dram_bytes;
  K fixed_s;
  K core_j;
  K dram_j;
  K idle_scale;
  K exponent;  ///< p of the soft maximum of core and DRAM time, (a^p + b^p)^(1/p)
  K inverse_exponent;
  K log2_intensity;  ///< log2 of core_cycles / dram_bytes
  K most_distance;   ///< of log2 of core and of DRAM time: farther apart, only the longer counts
  K limit_w;         ///< mean power above which the power limit lowers the clock
};

/// What a launch comes to at one clock.
template <class V>
struct Point {
  V core_mhz;
  V time_s;
  V energy_j;
};

RUBATO_LANES Memory<double> memory_of(const MemState& state) {
  return {.bytes_per_s = state.bandwidth_gbs * 1e9,
          .base_power_w = state.base_power_w,
          .voltage_scale = state.voltage_scale};
}

// Piecewise linear through ascending points, constant before the first; the last slope continues.
template <class V>
RUBATO_LANES V interpolate(const std::vector<double>& xs, const std::vector<double>& ys,
                           const V& x) {
  V y = lanes::all<V>(ys[0]);
  for (std::size_t i = 0; i + 1 < xs.size(); ++i) {
    const double slope = (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i]);
    y = lanes::select(lanes::above(x, lanes::all<V>(xs[i])), ys[i] + (x - xs[i]) * slope, y);
  }
  return y;
}

/// CrossbarCurve::relative x core clock, MHz: linear between the points, in proportion to the clock
/// before the first and beyond the last.
template <class V>
RUBATO_LANES V carried_mhz(const CrossbarCurve& curve, const V& core_mhz) {
  const std::vector<double>&xs = curve.core_mhz, &ys = curve.relative;
  V carried = ys.front() * core_mhz;
  for (std::size_t i = 0; i + 1 < xs.size(); ++i) {
    const double from = ys[i] * xs[i];
    const double slope = (ys[i + 1] * xs[i + 1] - from) / (xs[i + 1] - xs[i]);
    carried = lanes::select(lanes::above(core_mhz, lanes::all<V>(xs[i])),
                            from + (core_mhz - xs[i]) * slope, carried);
  }
  return lanes::select(lanes::above(core_mhz, lanes::all<V>(xs.back())), ys.back() * core_mhz,
                       carried);
}

template <class V, class K>
RUBATO_LANES V relative_voltage(const GpuSpec& spec, K voltage_scale, const V& core_mhz) {
  const V v = interpolate(spec.voltage.core_mhz, spec.voltage.relative_v, core_mhz);
  return 1.0 + (v - 1.0) * voltage_scale;
}

template <class V, class K>
RUBATO_LANES V idle_power_w(const GpuSpec& spec, const Memory<K>& memory, const V& core_mhz,
                            const V& squared_voltage) {
  return memory.base_power_w +
         (spec.shared.leakage_w + spec.shared.clock_w_per_mhz * core_mhz) * squared_voltage;
}

template <class V>
struct Bandwidth {
  V s_per_byte;
  V log2_bytes_per_cycle;
};

// The soft minimum, (a^-q + b^-q)^(-1/q), of what the memory delivers and what the core side
// carries.
template <class V, class K>
RUBATO_LANES Bandwidth<V> bandwidth_at(const GpuSpec& spec, const Memory<K>& memory,
                                       const V& core_mhz) {
  const CrossbarCurve& curve = spec.crossbar;
  const double most_per_cycle = spec.shared.crossbar_bytes_per_cycle;
  V core_side = most_per_cycle * 1e6 * core_mhz;
  V log2_per_cycle = lanes::all<V>(lanes::log2(lanes::all<lanes::Two>(most_per_cycle))[0]);
  if (!curve.core_mhz.empty()) {
    const V carried = carried_mhz(curve, core_mhz);
    core_side = most_per_cycle * 1e6 * carried;
    log2_per_cycle = lanes::log2(most_per_cycle * carried / core_mhz);
  }
  const V memory_side = V{} + memory.bytes_per_s;
  const V balance = lanes::log2(memory_side / core_side);
  const double q = spec.shared.bandwidth_exponent;
  const double inverse_q = std::min(1.0 / q, lanes::largest_inverse_exponent);
  const V visible =
      lanes::larger(lanes::all<V>(lanes::least_visible_log2), -q * lanes::magnitude(balance));
  const V log2_lost = lanes::log2_soft_factor(visible, inverse_q);
  return {.s_per_byte = lanes::exp2(log2_lost) / lanes::smaller(memory_side, core_side),
          .log2_bytes_per_cycle = log2_per_cycle + lanes::smaller(balance, V{}) - log2_lost};
}

template <class V, class K>
RUBATO_LANES State<V> state_at(const GpuSpec& spec, const Memory<K>& memory, const V& core_mhz) {
  const Bandwidth<V> bandwidth = bandwidth_at(spec, memory, core_mhz);
  const V voltage = relative_voltage(spec, memory.voltage_scale, core_mhz);
  const V squared_voltage = voltage * voltage;
  return {.core_mhz = core_mhz,
          .s_per_cycle = 1.0 / (core_mhz * 1e6),
          .s_per_byte = bandwidth.s_per_byte,
          .log2_balance = bandwidth.log2_bytes_per_cycle,
          .idle_w = idle_power_w(spec, memory, core_mhz, squared_voltage),
          .squared_voltage = squared_voltage};
}

/// @param overlap_exponent  of a kernel with overlap_scale 1
RUBATO_LANES Launch<double> launch_of(const KernelCoefficients& kernel, double overlap_exponent,
                                      double dram_j_per_byte) {
  using Limits = std::numeric_limits<double>;
  const double p = overlap_exponent * kernel.overlap_scale;
  const double cycles = kernel.core_cycles, bytes = kernel.dram_bytes;
  const double inverse_p = 1.0 / p;
  const bool sound = cycles >= 0.0 && cycles <= Limits::max() && bytes >= 0.0 &&
                     bytes <= Limits::max() && inverse_p >= 0.0 &&
                     inverse_p <= lanes::largest_inverse_exponent;
  const double ratio = cycles / bytes;
  const double normal = ratio < Limits::min()   ? Limits::min()
                        : ratio > Limits::max() ? Limits::max()
                                                : ratio;
  return {.core_cycles = cycles,
          .dram_bytes = bytes,
          // lanes::log2 takes bits apart: of NaN it would make a number.
          .fixed_s = sound ? kernel.fixed_s : Limits::quiet_NaN(),
          .core_j = kernel.core_j,
          .dram_j = dram_j_per_byte * bytes,
          .idle_scale = kernel.idle_scale,
          .exponent = p,
          .inverse_exponent = inverse_p,
          .log2_intensity = lanes::log2(lanes::all<lanes::Two>(normal))[0],
          .most_distance = -lanes::least_visible_log2 * inverse_p,
          .limit_w = Limits::infinity()};
}

/// Mean power at which the power limit holds a kernel, W.
RUBATO_LANES double regulated_power_w(const GpuSpec& spec, const KernelCoefficients& kernel,
                                      double power_limit_w) {
  return power_limit_w * spec.power_limit.regulated_frac * kernel.limit_scale;
}

RUBATO_LANES Launch<double> launch_of(const KernelCoefficients& kernel, const GpuSpec& spec,
                                      double power_limit_w) {
  Launch<double> launch =
      launch_of(kernel, spec.shared.overlap_exponent, spec.shared.dram_nj_per_byte * 1e-9);
  launch.limit_w = regulated_power_w(spec, kernel, power_limit_w);
  return launch;
}

/// log2 of the p-th power of the shorter over the longer one of core and DRAM time.
template <class V, class K>
RUBATO_LANES V log2_overlap(const V& log2_balance, const Launch<K>& kernel) {
  const V distance = lanes::magnitude(kernel.log2_intensity + log2_balance);
  // GCC 12 knows a least value of vectors as one instruction, unless it is with a constant.
  return -kernel.exponent * lanes::smaller(V{} + kernel.most_distance, distance);
}

/// Time of a launch. @param factor  soft_factor of the kernel's log2_overlap
template <class V, class K>
RUBATO_LANES V time_at(const State<V>& state, const Launch<K>& kernel, const V& factor) {
  const V core_s = kernel.core_cycles * state.s_per_cycle;
  const V dram_s = kernel.dram_bytes * state.s_per_byte;
  return lanes::larger(core_s, dram_s) * factor + kernel.fixed_s;
}

template <class V, class K>
RUBATO_LANES V energy_at(const State<V>& state, const Launch<K>& kernel, const V& time_s) {
  return state.idle_w * kernel.idle_scale * time_s + kernel.core_j * state.squared_voltage +
         kernel.dram_j;
}

/// Time and energy of a launch with no power limit.
template <class V, class K>
RUBATO_LANES Point<V> point_at(const State<V>& state, const Launch<K>& kernel) {
  const V overlap = log2_overlap(state.log2_balance, kernel);
  const V time_s = time_at(state, kernel, lanes::soft_factor(overlap, kernel.inverse_exponent));
  return {state.core_mhz, time_s, energy_at(state, kernel, time_s)};
}

// Share of the mean power that is over the limit, below 0 where it is within. As a function of the
// clock this is straighter than the power itself, so the search below takes fewer steps.
template <class V>
RUBATO_LANES V excess(const Point<V>& point, const Launch<V>& kernel) {
  return 1.0 - kernel.limit_w * point.time_s / point.energy_j;
}

// What the excess of the end that stays is multiplied by. @param shrunk_to  new excess of the end
// that moved, over its excess before
template <class V>
RUBATO_LANES V weight(const V& shrunk_to) {
  const V lost = 1.0 - shrunk_to;
  return lanes::select(lanes::above(lost, V{}), lost, lanes::all<V>(0.5));
}

/// The lowest core clock in effect, MHz: what the lowest request gives may lie below it.
RUBATO_LANES double lowest_mhz(const CoreClocks& core) {
  return core.effective_mhz.empty() ? core.min_mhz
                                    : std::min(core.min_mhz, core.effective_mhz.front());
}

/// The highest core clock at which the mean power is within the kernel's limit_w, or the lowest
/// clock of the GPU. Root finding by false position (regula falsi): the next clock is where the
/// line through the excess at both ends of the bracket crosses 0. An end that stays twice in a row
/// has its excess reduced, so that the other end moves too.
/// Source: Anderson and Bjoerck, BIT 13, 1973.
template <class V>
RUBATO_LANES Point<V> regulated(const GpuSpec& spec, const Memory<V>& memory,
                                const Launch<V>& kernel) {
  using lanes::above, lanes::all, lanes::any, lanes::at_least, lanes::select;
  constexpr double beyond_boost = 1.25, close_enough = 1e-12;
  constexpr int most_beyond = 8, most_steps = 60;
  Point<V> below = point_at(state_at(spec, memory, lanes::all<V>(lowest_mhz(spec.core))), kernel);
  V low_mhz = below.core_mhz, low_excess = excess(below, kernel);
  V high_mhz = lanes::all<V>(spec.core.max_mhz);
  V high_excess = excess(point_at(state_at(spec, memory, high_mhz), kernel), kernel);
  const V zero{};
  for (int i = 0; i < most_beyond && any(at_least(zero, high_excess)); ++i) {
    high_mhz = select(at_least(zero, high_excess), high_mhz * beyond_boost, high_mhz);
    high_excess = excess(point_at(state_at(spec, memory, high_mhz), kernel), kernel);
  }
  V last_side{};
  auto searching = above(zero, low_excess);
  for (int i = 0; i < most_steps; ++i) {
    searching = searching & at_least(high_mhz - low_mhz, close_enough * high_mhz);
    if (!any(searching)) break;
    const V mhz = (low_mhz * high_excess - high_mhz * low_excess) / (high_excess - low_excess);
    const Point<V> tried = point_at(state_at(spec, memory, mhz), kernel);
    const V tried_excess = excess(tried, kernel);
    const auto over = searching & above(tried_excess, zero);
    const auto under = searching & ~above(tried_excess, zero);
    low_excess = select(over & above(last_side, zero),
                        low_excess * weight(tried_excess / high_excess), low_excess);
    high_excess = select(under & above(zero, last_side),
                         high_excess * weight(tried_excess / low_excess), high_excess);
    high_mhz = select(over, mhz, high_mhz);
    high_excess = select(over, tried_excess, high_excess);
    low_mhz = select(under, mhz, low_mhz);
    low_excess = select(under, tried_excess, low_excess);
    below.core_mhz = select(under, tried.core_mhz, below.core_mhz);
    below.time_s = select(under, tried.time_s, below.time_s);
    below.energy_j = select(under, tried.energy_j, below.energy_j);
    last_side = select(over, all<V>(1.0), select(under, all<V>(-1.0), last_side));
    searching =
        searching & ~(above(tried_excess, all<V>(-close_enough)) & at_least(zero, tried_excess));
  }
  return below;
}

}  // namespace rubato::formulas
