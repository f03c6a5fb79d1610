#pragma once
// What measurements say of one kernel's coefficients, for measurement plans.

#include <vector>

#include <Eigen/Core>

#include "models/calibration/sweep_fit.hpp"

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

}  // namespace rubato
