#include "models/calibration/kernel_prior.hpp"

#include <algorithm>
#include <cmath>

#include "models/gpu/spec_parameters.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Of {
  enum Coefficient : Index { cycles, bytes, fixed, core_energy };
};

// Shares of the time of a launch and, for the core energy, of its energy.
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

// Shares become coefficients by what the fastest point measured.
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

}  // namespace

KernelPrior unmeasured_kernel_prior() { return wide_prior(); }

KernelPrior any_kernel_prior(const GpuSpec& spec, const SweepPoint& seen, bool applied_clock) {
  return absolute_prior(wide_prior(), spec, clock_state(spec, seen.clock, applied_clock), seen);
}

KernelPrior kernel_prior(const GpuSpec& spec, const SweepPoint& seen, bool applied_clock) {
  const ClockState state = clock_state(spec, seen.clock, applied_clock);
  return absolute_prior(share_prior(spec, state), spec, state, seen);
}

}  // namespace rubato
