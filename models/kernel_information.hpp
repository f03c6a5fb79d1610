#pragma once
// What measurements say of one kernel's coefficients, for measurement plans.

#include <vector>

#include <Eigen/Dense>

#include "models/sweep_calibration.hpp"

namespace rubato {

/// A kernel's information from measurements, for measurement plans: how its time
/// and power residuals move with its coefficients.
struct KernelPosterior {
  KernelCoefficients coefficients;
  Eigen::MatrixXd precision;  ///< shape [7 x 7], inverse covariance in logarithms, prior included
};
[[nodiscard]] std::vector<KernelPosterior> kernel_posteriors(const GpuSpec& spec,
                                                             const Sweep& sweep,
                                                             const SweepFitOptions& options = {});

/// Rows (time, power) of the derivative of a point's logarithms by the
/// logarithms of the coefficients, shape [2 x 7].
[[nodiscard]] Eigen::MatrixXd point_sensitivity(const GpuSpec& spec,
                                                const KernelCoefficients& kernel,
                                                const SweepPoint& point, bool applied_clock);

/// What the spec's kernels have in common, for a kernel of which nothing was
/// measured: median and spread of their coefficients per time and power.
struct KernelPrior {
  Eigen::VectorXd mean;   ///< logarithms of the coefficients, shape [7]
  Eigen::VectorXd sigma;  ///< shape [7]
};
/// @param seen  the kernel's fastest measured point
[[nodiscard]] KernelPrior kernel_prior(const GpuSpec& spec, const SweepPoint& seen,
                                       bool applied_clock);

}  // namespace rubato
