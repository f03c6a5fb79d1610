#include "models/validation/measurement_plan.hpp"

#include <algorithm>
#include <cmath>

#include <tbb/parallel_for.h>

#include "common/error.hpp"
#include "models/calibration/kernel_information.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// What is known of a kernel, what its part of the saving hangs on, and what
// each clock would add.
struct KernelDesign {
  MatrixXd precision;            ///< of the coefficients' logarithms
  VectorXd slope;                ///< of the saving in J
  std::vector<MatrixXd> gained;  ///< shape [clocks], precision a measurement adds
};

// Coefficients were measured to about the error of the spec's cells, or derived
// or guessed; the last three hardly ever move.
MatrixXd prior_precision(const GpuModel& model, const Kernel& kernel, KernelId id) {
  const double work = std::max(coefficient_error(model.spec(), kernel, model.source(id)),
                               cell_errors(model.spec()).energy);
  VectorXd sigma(kernel_parameters);
  sigma << work, work, 1.0, work, 0.02, 0.3, 0.1;
  return sigma.cwiseInverse().cwiseAbs2().asDiagonal();
}

VectorXd saving_slope(const GpuModel& model, const KernelCoefficients& kernel,
                      const ClockPair& planned, const ClockPair& usual) {
  constexpr double difference = 1e-5;
  const auto saved_j = [&](const KernelCoefficients& c) {
    return operating_point(model.spec(), c, usual, model.power_limit_w()).energy_j -
           operating_point(model.spec(), c, planned, model.power_limit_w()).energy_j;
  };
  const VectorXd at = read_coefficients(kernel);
  const double now = saved_j(kernel);
  VectorXd slope(kernel_parameters);
  for (Index j = 0; j < kernel_parameters; ++j) {
    VectorXd moved = at;
    moved[j] += difference;
    slope[j] = (saved_j(make_coefficients(moved)) - now) / difference;
  }
  return slope;
}

double variance(const KernelDesign& kernel, const MatrixXd& precision) {
  return kernel.slope.dot(precision.ldlt().solve(kernel.slope));
}

}  // namespace

MeasurementPlan suggest_measurements(const GpuModel& model, const Trace& trace,
                                     const ClockGrid& grid, const PlannedKernels& plan,
                                     const Sweep* measured, double noise, std::size_t count) {
  if (!(noise > 0.0)) throw UsageError("the noise of a measurement must be > 0");
  std::vector<KernelDesign> designs(trace.kernels.size());
  double default_j = 0.0;
  std::vector<KernelPosterior> known;
  if (measured != nullptr) {
    known = kernel_posteriors(model.spec(), *measured, {.time_sigma = noise, .power_sigma = noise});
  }
  tbb::parallel_for(std::size_t{0}, designs.size(), [&](std::size_t k) {
    const auto id = id_at<KernelId>(k);
    KernelDesign& design = designs[k];
    const KernelCoefficients& c = model.coefficients(id);
    design.precision = prior_precision(model, trace.kernels[k], id);
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (measured->kernels[i].name == trace.kernels[k].name) design.precision = known[i].precision;
    }
    design.slope =
        plan.launches[k] * saving_slope(model, c, grid[plan.clock[k]], grid[grid.default_clock()]);
    for (const ClockPair& clock : grid.pairs()) {
      const SweepPoint point{.clock = clock,
                             .time_s = {},
                             .power_w = {},
                             .power_cap_w = model.power_limit_w(),
                             .dram_bytes = {}};
      const MatrixXd by_coefficient = point_sensitivity(model.spec(), c, point, false) / noise;
      design.gained.emplace_back(by_coefficient.transpose() * by_coefficient);
    }
  });
  for (std::size_t k = 0; k < designs.size(); ++k) {
    default_j +=
        plan.launches[k] * model.evaluate(id_at<KernelId>(k), grid[grid.default_clock()]).energy_j;
  }
  const auto sigma_pct = [&](double variance_j2) {
    return 100.0 * std::sqrt(variance_j2) / default_j;
  };
  const auto total = [&](const std::optional<std::size_t>& clock) {
    double sum = 0.0;
    for (const KernelDesign& design : designs)
      sum += variance(
          design, clock ? MatrixXd(design.precision + design.gained[*clock]) : design.precision);
    return sum;
  };

  MeasurementPlan out;
  out.sigma_now_pct = sigma_pct(total({}));
  double full = 0.0;
  for (const KernelDesign& design : designs) {
    MatrixXd all = design.precision;
    for (const MatrixXd& gained : design.gained) all += gained;
    full += variance(design, all);
  }
  out.sigma_full_pct = sigma_pct(full);
  for (std::size_t step = 0; step < std::min(count, grid.size()); ++step) {
    std::vector<double> after(grid.size());
    tbb::parallel_for(std::size_t{0}, grid.size(), [&](std::size_t c) { after[c] = total(c); });
    const auto best = static_cast<std::size_t>(std::ranges::min_element(after) - after.begin());
    for (KernelDesign& design : designs) design.precision += design.gained[best];
    out.points.push_back({id_at<ClockId>(best), sigma_pct(after[best])});
  }
  return out;
}

}  // namespace rubato
