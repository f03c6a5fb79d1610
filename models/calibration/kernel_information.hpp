#pragma once
// How much measurements say of one kernel's coefficients (Fisher information), for measurement
// plans.

#include <vector>

#include <Eigen/Core>

#include "models/calibration/sweep_fit.hpp"

namespace rubato {

/// The Gaussian posterior of a kernel's coefficients given its measurements.
struct KernelPosterior {
  KernelCoefficients coefficients;
  Eigen::MatrixXd precision;  ///< shape [7 x 7], inverse covariance of logarithms, prior included
};
/// One for each kernel of the sweep, with the spec's GPU parameters fixed.
[[nodiscard]] std::vector<KernelPosterior> kernel_posteriors(const GpuSpec& spec,
                                                             const Sweep& sweep,
                                                             const SweepFitOptions& options = {});

/// Derivatives of ln(time) (first row) and ln(power) (second row) of a point by the logarithms of
/// the coefficients, shape [2 x 7].
[[nodiscard]] Eigen::MatrixXd point_sensitivity(const GpuSpec& spec,
                                                const KernelCoefficients& kernel,
                                                const SweepPoint& point, bool applied_clock);

}  // namespace rubato
