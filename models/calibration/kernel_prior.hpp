#pragma once
// What kernels are like before anything, or more than one point, was measured.

#include <vector>

#include <Eigen/Core>

#include "models/calibration/sweep.hpp"
#include "models/gpu/spec.hpp"
#include "models/kernel/model.hpp"

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

/// Whether the board draws as much as the power limit allows, so that the core clock in effect may
/// lie below the one asked for. Not by a limit that was assumed for the powers there are.
[[nodiscard]] bool is_at_limit(const GpuSpec& spec, const SweepPoint& point);

/// As kernel_prior, for a kernel that is at the power limit wherever it was measured. Its power
/// says then that it would draw more, not how much: its clock in effect may lie anywhere from where
/// the voltage begins to rise to the one asked for, and takes the core energy with it.
class LimitedKernelPrior {
 public:
  /// @param spec  whose kernels are known
  /// @param gpu   kept, as is `seen`: a draw of the spec, or the spec itself. What its idle power
  ///              leaves at a clock is the core's
  LimitedKernelPrior(const GpuSpec& spec, const GpuSpec& gpu, const SweepPoint& seen,
                     bool applied_clock);

  /// @param quantile  of the clock in effect, 0 to 1: where the limit holds the kernels that the
  ///                  spec knows, as far as these and five that lie anywhere say
  [[nodiscard]] KernelPrior at(double quantile) const;

 private:
  [[nodiscard]] double core_mhz(double quantile) const;

  const GpuSpec& gpu_;
  const SweepPoint& seen_;
  ClockState asked_;
  KernelPrior shares_;  ///< of time and energy
  double lowest_mhz_;
  std::vector<double> known_;  ///< where known kernels lie in the range of logarithms, 0 to 1
  double weight_ = 1.0;        ///< of each: copies of one measurement count once
};

}  // namespace rubato
