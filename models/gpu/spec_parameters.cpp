#include "models/gpu/spec_parameters.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double least = 1e-9;  // instead of a value of zero, which has no logarithm
constexpr bool not_power = false;

// Voltage points as steps above the one before.
std::vector<double> steps_of(const VoltageCurve& curve) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < curve.relative_v.size(); ++i)
    steps.push_back(curve.relative_v[i] - curve.relative_v[i - 1]);
  return steps;
}

void set_steps(const std::vector<double>& steps, VoltageCurve& curve) {
  for (std::size_t i = 0; i < steps.size(); ++i)
    curve.relative_v[i + 1] = curve.relative_v[i] + steps[i];
}

// Crossbar points as slopes of relative x core clock, from the point before.
std::vector<double> slopes_of(const CrossbarCurve& curve) {
  std::vector<double> slopes;
  for (std::size_t i = 1; i < curve.relative.size(); ++i) {
    const double low = curve.core_mhz[i - 1], high = curve.core_mhz[i];
    slopes.push_back((curve.relative[i] * high - curve.relative[i - 1] * low) / (high - low));
  }
  return slopes;
}

void set_slopes(const std::vector<double>& slopes, CrossbarCurve& curve) {
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const double low = curve.core_mhz[i], high = curve.core_mhz[i + 1];
    curve.relative[i + 1] = (curve.relative[i] * low + slopes[i] * (high - low)) / high;
  }
}

// Calls `f(parameter, value)` for every fitted number, always in the same order.
template <class F>
void visit(GpuSpec& spec, F&& f) {
  const double top_gbs =
      std::ranges::max_element(spec.mem_states, {}, &MemState::bandwidth_gbs)->bandwidth_gbs;
  if (!spec.core.effective_mhz.empty())
    f(SpecParameter{"effective_core_clock[lowest]", "MHz", 0.2, not_power},
      spec.core.effective_mhz.front());
  std::vector<double> steps = steps_of(spec.voltage);
  for (std::size_t i = 0; i < steps.size(); ++i)
    f(SpecParameter{fmt::format("voltage_step[{:.0f}]", spec.voltage.core_mhz[i + 1]),
                    "of the floor", 1.4},
      steps[i]);
  set_steps(steps, spec.voltage);
  f(SpecParameter{"leakage", "W", 1.5}, spec.shared.leakage_w);
  f(SpecParameter{"clock_power", "W/MHz", 1.5}, spec.shared.clock_w_per_mhz);
  f(SpecParameter{"dram_energy", "nJ/byte", 0.7, not_power}, spec.shared.dram_nj_per_byte);
  f(SpecParameter{"overlap_exponent", "1", 0.7, not_power}, spec.shared.overlap_exponent);
  f(SpecParameter{"regulated_share_of_limit", "1", 0.03}, spec.power_limit.regulated_frac);
  f(SpecParameter{"crossbar", "bytes/cycle", 0.7, not_power}, spec.shared.crossbar_bytes_per_cycle);
  if (!spec.crossbar.relative.empty()) {
    std::vector<double> slopes = slopes_of(spec.crossbar);
    f(SpecParameter{fmt::format("crossbar_relative[{:.0f}]", spec.crossbar.core_mhz.front()), "1",
                    0.5, not_power},
      spec.crossbar.relative.front());
    for (std::size_t i = 0; i < slopes.size(); ++i)
      f(SpecParameter{fmt::format("crossbar_slope[{:.0f}]", spec.crossbar.core_mhz[i + 1]), "1",
                      1.4, not_power},
        slopes[i]);
    set_slopes(slopes, spec.crossbar);
  }
  for (MemState& state : spec.mem_states) {
    f(SpecParameter{fmt::format("base_power[{}]", state.name), "W", 1.5}, state.base_power_w);
    f(SpecParameter{fmt::format("bandwidth[{}]", state.name), "GB/s",
                    state.bandwidth_gbs >= top_gbs ? held_sigma : 0.5,
                    not_power},  // bytes scale with it
      state.bandwidth_gbs);
    f(SpecParameter{fmt::format("boost_clock[{}]", state.name), "MHz", 0.03, not_power},
      state.boost_mhz);
    if (state.name == "auto")
      f(SpecParameter{"voltage_scale[auto]", "1", 0.3}, state.voltage_scale);
  }
}

// Lowers the bandwidth of each memory state to that of those with more memory clock.
void order_bandwidths(std::vector<MemState>& states) {
  for (MemState& state : states) {
    for (const MemState& faster : states) {
      if (faster.mem_mhz > state.mem_mhz)
        state.bandwidth_gbs = std::min(state.bandwidth_gbs, faster.bandwidth_gbs);
    }
  }
}

}  // namespace

std::vector<SpecParameter> spec_parameters(const GpuSpec& spec) {
  std::vector<SpecParameter> list;
  GpuSpec copy = spec;
  visit(copy, [&](SpecParameter parameter, double&) { list.push_back(std::move(parameter)); });
  return list;
}

std::size_t parameter_count(const GpuSpec& spec) { return spec_parameters(spec).size(); }

VectorXd read_parameters(const GpuSpec& spec) {
  std::vector<double> values;
  GpuSpec copy = spec;
  visit(copy, [&](const SpecParameter&, double& value) {
    values.push_back(std::log(std::max(value, least)));
  });
  return Eigen::Map<VectorXd>(values.data(), static_cast<Index>(values.size()));
}

void write_parameters(const VectorXd& logarithms, GpuSpec& spec) {
  Index next = 0;
  visit(spec, [&](const SpecParameter&, double& value) { value = std::exp(logarithms[next++]); });
  for (std::size_t i = spec.core.effective_mhz.size(); i-- > 1;)
    spec.core.effective_mhz[i - 1] =
        std::min(spec.core.effective_mhz[i - 1], spec.core.effective_mhz[i]);
  for (MemState& state : spec.mem_states)
    state.boost_mhz = std::max(state.boost_mhz, spec.core.min_mhz);
  order_bandwidths(spec.mem_states);
}

VoltageCurve curve_of(const VoltagePrior& prior, const CoreClocks& core) {
  if (prior.knee_mhz >= core.max_mhz) return {{core.max_mhz}, {1.0}};
  const double rise = prior.slope_per_ghz * 1e-3 * (core.max_mhz - prior.knee_mhz);
  return {{prior.knee_mhz, core.max_mhz}, {1.0, 1.0 + rise}};
}

VectorXd read_coefficients(const KernelCoefficients& kernel) {
  VectorXd out(kernel_parameters);
  out << kernel.core_cycles, kernel.dram_bytes, kernel.fixed_s,
      std::max(kernel.core_j, least * kernel.fixed_s), kernel.limit_scale, kernel.overlap_scale,
      kernel.idle_scale;
  return out.array().log();
}

KernelCoefficients make_coefficients(const Eigen::Ref<const VectorXd>& logarithms) {
  const VectorXd c = logarithms.array().exp();
  return {.core_cycles = c[0],
          .dram_bytes = c[1],
          .fixed_s = c[2],
          .core_j = c[3],
          .limit_scale = c[4],
          .overlap_scale = c[5],
          .idle_scale = c[6]};
}

}  // namespace rubato
