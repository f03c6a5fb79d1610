#include "models/calibration/kernel_prior.hpp"

#include <algorithm>
#include <cmath>

#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Of {
  enum Coefficient : Index { cycles, bytes, fixed, core_energy, limit, overlap, idle };
};

// Logarithms of a kernel's coefficients as shares: of the time of a launch or, for the core energy,
// of its energy. The last three are factors already.
VectorXd shares(const KernelCoefficients& kernel, const ClockState& state) {
  constexpr double least_share = 1e-3;
  const OperatingPoint point = unlimited_point(state, kernel);
  VectorXd out(kernel_parameters);
  out << kernel.core_cycles / (state.core_mhz * 1e6) / point.time_s,
      kernel.dram_bytes / state.dram_bytes_per_s / point.time_s, kernel.fixed_s / point.time_s,
      kernel.core_j * state.squared_voltage / point.energy_j, kernel.limit_scale,
      kernel.overlap_scale, kernel.idle_scale;
  return out.cwiseMax(least_share).array().log();
}

// Enough for kernels of any kind: half core, half memory, a few per cent of latency.
KernelPrior wide_prior() {
  KernelPrior prior{VectorXd(kernel_parameters), VectorXd(kernel_parameters)};
  prior.mean << std::log(0.7), std::log(0.5), std::log(0.03), std::log(0.4), 0.0, 0.0, 0.0;
  prior.sigma << 3.0, 3.0, 1.5, 2.0, 0.02, 0.3, 0.1;
  return prior;
}

KernelPrior share_prior(const GpuSpec& spec, const ClockState& state) {
  constexpr std::size_t enough_kernels = 8;
  KernelPrior prior = wide_prior();
  if (spec.kernels.size() < enough_kernels) return prior;
  constexpr double least_sigma = 0.3, widening = 1.3;
  const auto kernels = static_cast<Index>(spec.kernels.size());
  MatrixXd all(kernel_parameters, kernels);
  for (Index k = 0; k < kernels; ++k)
    all.col(k) = shares(spec.kernels[static_cast<std::size_t>(k)].coefficients, state);
  for (const Index j : {Of::cycles, Of::bytes, Of::fixed, Of::core_energy}) {
    std::vector<double> values(all.row(j).begin(), all.row(j).end());
    std::ranges::sort(values);
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    constexpr double sigmas_between = 2.0 * 1.2816;  // the 10th and 90th percentiles of a Gaussian
    prior.mean[j] = at(0.5);
    prior.sigma[j] = std::max(widening * (at(0.9) - at(0.1)) / sigmas_between, least_sigma);
  }
  return prior;
}

// Turns shares into coefficients by the time, power and DRAM bytes of the fastest measured point.
KernelPrior absolute_prior(const KernelPrior& shares, const GpuSpec& spec, const ClockState& state,
                           const SweepPoint& seen) {
  const double time_s = seen.time_s.value_or(1.0);
  const double energy_j = time_s * seen.power_w.value_or(0.5 * spec.power_limit.limit_w);
  KernelPrior prior{shares.mean, shares.sigma};
  prior.mean[Of::cycles] += std::log(time_s * state.core_mhz * 1e6);
  prior.mean[Of::bytes] += std::log(time_s * state.dram_bytes_per_s);
  prior.mean[Of::fixed] += std::log(time_s);
  prior.mean[Of::core_energy] += std::log(energy_j / state.squared_voltage);
  if (seen.dram_bytes) {
    constexpr double counter_sigma = 0.15;  // what caches and refresh leave open
    constexpr double least_bytes = 1.0;
    prior.mean[Of::bytes] = std::log(std::max(*seen.dram_bytes, least_bytes));
    prior.sigma[Of::bytes] = counter_sigma;
    if (*seen.dram_bytes < 0.01 * time_s * state.dram_bytes_per_s) prior.sigma[Of::bytes] = 1.0;
  }
  return prior;
}

// The highest clock of the curve, from its lowest point on, that needs no more than 2 % above the
// voltage floor.
double end_of_floor_mhz(const VoltageCurve& curve) {
  constexpr double risen = 1.02;
  std::size_t last = 0;
  while (last + 1 < curve.relative_v.size() && curve.relative_v[last + 1] <= risen) ++last;
  return curve.core_mhz[last];
}

}  // namespace

KernelPrior unmeasured_kernel_prior() { return wide_prior(); }

KernelPrior any_kernel_prior(const GpuSpec& spec, const SweepPoint& seen, bool applied_clock) {
  return absolute_prior(wide_prior(), spec, clock_state(spec, seen.clock, applied_clock), seen);
}

KernelPrior kernel_prior(const GpuSpec& spec, const SweepPoint& seen, bool applied_clock) {
  const ClockState state = clock_state(spec, seen.clock, applied_clock);
  return absolute_prior(share_prior(spec, state), spec, state, seen);
}

bool is_at_limit(const GpuSpec& spec, const SweepPoint& point) {
  constexpr double near = 0.03;  // kernels differ by 2 % in the power they are held at
  const double limit_w = point.power_cap_w.value_or(spec.power_limit.limit_w);
  return point.power_w && !point.cap_assumed &&
         *point.power_w >= (1.0 - near) * spec.power_limit.regulated_frac * limit_w;
}

LimitedKernelPrior::LimitedKernelPrior(const GpuSpec& spec, const GpuSpec& gpu,
                                       const SweepPoint& seen, bool applied_clock)
    : gpu_(gpu),
      seen_(seen),
      asked_(clock_state(spec, seen.clock, applied_clock)),
      shares_(share_prior(spec, asked_)),
      lowest_mhz_(std::min(end_of_floor_mhz(spec.voltage), asked_.core_mhz)) {
  constexpr double rounding = 1e-3;
  const double limit_w = seen.power_cap_w.value_or(spec.power_limit.limit_w);
  const MemState& mem = spec.mem_states[index(seen.clock.mem)];
  for (const CalibratedKernel& kernel : spec.kernels) {
    const double mhz = limited_point(spec, kernel.coefficients, mem, asked_, limit_w).core_mhz;
    if (mhz < asked_.core_mhz * (1.0 - rounding))
      known_.push_back(std::clamp(
          std::log(mhz / lowest_mhz_) / std::log(asked_.core_mhz / lowest_mhz_), 0.0, 1.0));
  }
  const auto distinct = spec.fit_errors.find(distinct_kernels_key);
  if (distinct != spec.fit_errors.end() && !spec.kernels.empty())
    weight_ = std::min(1.0, distinct->second / static_cast<double>(spec.kernels.size()));
}

// The quantile of a mixture: uniform densities, each of width 1 / (known kernels + 1) around a
// known kernel, and one over the whole range that weighs as much as five. So few known kernels say
// less.
double LimitedKernelPrior::core_mhz(double quantile) const {
  constexpr double anywhere = 5.0;
  constexpr int halvings = 40;
  const auto count = static_cast<double>(known_.size());
  const double part = 1.0 / (count + 1.0);
  const auto below = [&](double share) {
    double sum = anywhere * share;
    for (const double at : known_) {
      const double from = std::clamp(at - 0.5 * part, 0.0, 1.0 - part);
      sum += weight_ * std::clamp((share - from) / part, 0.0, 1.0);
    }
    return sum / (anywhere + weight_ * count);
  };
  double low = 0.0, high = 1.0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (below(middle) < quantile ? low : high) = middle;
  }
  return lowest_mhz_ * std::pow(asked_.core_mhz / lowest_mhz_, low);
}

KernelPrior LimitedKernelPrior::at(double quantile) const {
  constexpr double least_core = 0.02, least_sigma = 0.05, most_sigma = 1.0;
  const ClockState state =
      clock_state(gpu_, gpu_.mem_states[index(seen_.clock.mem)], core_mhz(quantile));
  KernelPrior prior = absolute_prior(shares_, gpu_, state, seen_);
  // Energy that is neither idle nor DRAM's is the core's.
  const double time_s = seen_.time_s.value_or(1.0), energy_j = time_s * seen_.power_w.value();
  const double idle_j = state.idle_w * time_s;
  const double dram_j = std::min(state.dram_j_per_byte * std::exp(prior.mean[Of::bytes]),
                                 state.dram_j_per_byte * state.dram_bytes_per_s * time_s);
  const double core_j = std::max(energy_j - idle_j - dram_j, least_core * energy_j);
  prior.mean[Of::core_energy] = std::log(core_j / state.squared_voltage);
  prior.sigma[Of::core_energy] = std::clamp(
      std::hypot(prior.sigma[Of::idle] * idle_j, dram_j) / core_j, least_sigma, most_sigma);
  return prior;
}

}  // namespace rubato
