#pragma once
// What kernels are like before anything, or more than one point, was measured.

#include <Eigen/Core>

#include "models/calibration/sweep.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// A Gaussian in the logarithms of a kernel's coefficients.
struct KernelPrior {
  Eigen::VectorXd mean;   ///< shape [7]
  Eigen::VectorXd sigma;  ///< shape [7]
};

/// For a kernel without a point: as wide as any_kernel_prior, of 1 s and 1 J.
[[nodiscard]] KernelPrior unmeasured_kernel_prior();

/// Wide enough for kernels of any kind. @param seen  the kernel's fastest measured point
[[nodiscard]] KernelPrior any_kernel_prior(const GpuSpec& spec, const SweepPoint& seen,
                                           bool applied_clock);

/// What the spec's kernels have in common: median and spread of their coefficients per time and
/// power. As any_kernel_prior if the spec knows too few.
/// @param seen  the kernel's fastest measured point
[[nodiscard]] KernelPrior kernel_prior(const GpuSpec& spec, const SweepPoint& seen,
                                       bool applied_clock);

}  // namespace rubato
