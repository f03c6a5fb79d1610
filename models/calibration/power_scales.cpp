#include "models/calibration/power_scales.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <Eigen/Core>

#include "models/kernel/model.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double common_sigma = 0.5, own_sigma = 0.25;  // prior of a factor's two parts
constexpr double prior_waiting_w = 60.0;                // prior of the shift of waiting power

// Power of each window as a linear model: a known part (idle and DRAM), what the core energy of
// each class adds, and the share of the window in which something ran.
struct PowerEquations {
  MatrixXd core_w;   ///< shape [windows x classes]
  VectorXd known_w;  ///< shape [windows]
  VectorXd busy;     ///< shape [windows]
  VectorXd measured_w;
};

// What a kernel draws while it runs, less idle power.
struct KernelPower {
  double core_w = 0.0, other_w = 0.0;
};

PowerEquations power_equations(const GpuSpec& spec, std::span<const WindowedKernel> kernels,
                               std::span<const LoggedWindows> runs) {
  std::size_t windows = 0;
  for (const LoggedWindows& run : runs) windows += run.windows.size();
  const auto rows = static_cast<Index>(windows);
  const auto classes = static_cast<Index>(all_names<KernelClass>().size());
  PowerEquations equations{MatrixXd::Zero(rows, classes), VectorXd::Zero(rows),
                           VectorXd::Zero(rows), VectorXd::Zero(rows)};
  Index row = 0;
  for (const LoggedWindows& run : runs) {
    const MemState& mem = spec.mem_states[index(run.clock.mem)];
    const double mhz = effective_core_mhz(spec, run.clock);
    const double idle_w = idle_power_w(spec, mem, mhz), waiting_w = waiting_power_w(spec, mem, mhz);
    std::vector<KernelPower> power;
    for (const WindowedKernel& kernel : kernels) {
      const OperatingPoint point =
          operating_point(spec, kernel.coefficients, run.clock, spec.power_limit.limit_w);
      const double core_w = kernel.coefficients.core_j *
                            clock_state(spec, mem, point.core_mhz).squared_voltage / point.time_s;
      power.push_back({core_w, point.energy_j / point.time_s - core_w - idle_w});
    }
    for (const PowerWindow& window : run.windows) {
      double running = 0.0;
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        running += window.share[k];
        equations.core_w(row, static_cast<Index>(kernels[k].kind)) +=
            window.share[k] * power[k].core_w;
        equations.known_w[row] += window.share[k] * power[k].other_w;
      }
      const double busy = std::min(running, 1.0);
      equations.busy[row] = busy;
      equations.known_w[row] += busy * idle_w + (1.0 - busy) * waiting_w;
      equations.measured_w[row] = window.power_w;
      ++row;
    }
  }
  return equations;
}

}  // namespace

PowerScales unscaled_powers() {
  const std::size_t classes = all_names<KernelClass>().size();
  return {.factor = std::vector<double>(classes, 1.0),
          .sigma = std::vector<double>(classes, unread_core_energy),
          .waiting_sigma_w = prior_waiting_w};
}

PowerScales scale_powers(const GpuSpec& spec, std::span<const WindowedKernel> kernels,
                         std::span<const LoggedWindows> runs) {
  // Prior of the shift of base power. At one clock nothing tells it from core power.
  const bool one_clock = std::ranges::all_of(
      runs, [&](const LoggedWindows& run) { return run.clock == runs.front().clock; });
  const double prior_offset_w = one_clock ? 0.1 : 20.0;
  constexpr double reading_error = 0.02;  // relative, of a power reading
  constexpr double least_factor = 0.02;
  const PowerEquations equations = power_equations(spec, kernels, runs);
  const Index windows = equations.core_w.rows(), classes = equations.core_w.cols();
  PowerScales scales = unscaled_powers();
  if (windows == 0) return scales;
  // Unknowns: the own part of each class, the part common to all, the two offsets.
  const Index common = classes, running = classes + 1, waiting = classes + 2;
  MatrixXd design(windows, classes + 3);
  design << equations.core_w, equations.core_w.rowwise().sum(), equations.busy,
      (1.0 - equations.busy.array()).matrix();
  VectorXd prior = VectorXd::Constant(classes + 3, 1.0 / (own_sigma * own_sigma));
  prior[common] = 1.0 / (common_sigma * common_sigma);
  prior[running] = 1.0 / (prior_offset_w * prior_offset_w);
  prior[waiting] = 1.0 / (prior_waiting_w * prior_waiting_w);
  const VectorXd excess =
      equations.measured_w - equations.known_w - equations.core_w.rowwise().sum();
  const VectorXd weight = (reading_error * equations.measured_w).cwiseMax(1.0).cwiseInverse();
  const MatrixXd weighted = weight.cwiseAbs2().asDiagonal() * design;
  MatrixXd normal = transposed_product(weighted, design);
  normal.diagonal() += prior;
  const MatrixXd covariance = inverse(normal);
  const VectorXd moved = product(covariance, transposed_product(weighted, excess));
  for (Index c = 0; c < classes; ++c) {
    const auto at = static_cast<std::size_t>(c);
    scales.factor[at] = std::max(1.0 + moved[c] + moved[common], least_factor);
    scales.sigma[at] =
        std::sqrt(covariance(c, c) + covariance(common, common) + 2.0 * covariance(c, common));
  }
  scales.offset_w = moved[running];
  scales.waiting_w = moved[waiting];
  scales.waiting_sigma_w = std::sqrt(covariance(waiting, waiting));
  const VectorXd left = excess - product(design, moved);
  scales.mean_error = left.cwiseAbs().cwiseQuotient(equations.measured_w).mean();
  scales.windows = static_cast<std::size_t>(windows);
  return scales;
}

GpuSpec with_waiting_power(GpuSpec spec, const PowerScales& scales, const ClockPair& clock) {
  constexpr double told = 0.25;  // of the prior's width
  constexpr double least_factor = 0.1;
  if (scales.waiting_sigma_w > told * prior_waiting_w) return spec;
  const MemState& usual = spec.mem_states[index(spec.default_clock.mem)];
  const double expected_w =
      waiting_power_w(spec, spec.mem_states[index(clock.mem)], effective_core_mhz(spec, clock));
  const double factor = std::max(1.0 + scales.waiting_w / expected_w, least_factor);
  WaitingPower read;
  constexpr int points = 12;
  for (int i = 0; i <= points; ++i) {
    const double mhz =
        std::lerp(spec.core.min_mhz, spec.core.max_mhz, static_cast<double>(i) / points);
    read.core_mhz.push_back(mhz);
    read.power_w.push_back(factor * waiting_power_w(spec, usual, mhz));
  }
  spec.waiting = std::move(read);
  spec.sources["waiting_power"] =
      fmt::format("a power log, {} windows inside steps", scales.windows);
  return spec;
}

}  // namespace rubato
