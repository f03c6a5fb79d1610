#pragma once
// Priors (in the sense of Bayes) of a kernel's coefficients: what kernels are like before anything,
// or more than one point, was measured.

#include <vector>

#include <Eigen/Core>

#include "models/calibration/sweep.hpp"
#include "models/gpu/spec.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

/// A Gaussian in the natural logarithms of a kernel's coefficients, each independent of the others.
struct KernelPrior {
  Eigen::VectorXd mean;   ///< shape [7]
  Eigen::VectorXd sigma;  ///< shape [7]
};

/// For a kernel without a point: as wide as any_kernel_prior. Its mean has no meaning in itself, as
/// no point says how long the kernel takes.
[[nodiscard]] KernelPrior unmeasured_kernel_prior();

/// Wide enough for kernels of any kind. @param seen  the kernel's fastest measured point
[[nodiscard]] KernelPrior any_kernel_prior(const GpuSpec& spec, const SweepPoint& seen,
                                           bool applied_clock);

/// What the spec's kernels have in common: median and spread of their shares of time (core, DRAM,
/// fixed) and of energy (core). As any_kernel_prior if the spec knows fewer than eight kernels.
/// @param seen  the kernel's fastest measured point
[[nodiscard]] KernelPrior kernel_prior(const GpuSpec& spec, const SweepPoint& seen,
                                       bool applied_clock);

/// Whether the board draws as much as the power limit allows, so that the core clock in effect may
/// lie below the one asked for. False where the limit was only assumed (SweepPoint::cap_assumed).
[[nodiscard]] bool is_at_limit(const GpuSpec& spec, const SweepPoint& point);

/// As kernel_prior, for a kernel that was at the power limit wherever it was measured. Its power
/// then says that it would draw more, not how much more. The clock in effect may lie anywhere from
/// where the voltage begins to rise to the clock asked for. The core energy follows from that
/// clock.
class LimitedKernelPrior {
 public:
  /// @param spec  the spec whose kernels are known
  /// @param gpu   the spec itself, or a draw of it. Power beyond its idle power and DRAM's is the
  ///              core's. Kept by reference, as is `seen`
  /// @param seen  the kernel's fastest measured point, with power
  LimitedKernelPrior(const GpuSpec& spec, const GpuSpec& gpu, const SweepPoint& seen,
                     bool applied_clock);

  /// @param quantile  of the clock in effect, 0 to 1. Its distribution: where the limit holds the
  ///                  kernels that the spec knows, mixed with five pseudo-kernels spread evenly
  [[nodiscard]] KernelPrior at(double quantile) const;

 private:
  [[nodiscard]] double core_mhz(double quantile) const;

  const GpuSpec& gpu_;
  const SweepPoint& seen_;
  ClockState asked_;
  KernelPrior shares_;  ///< of time and energy
  double lowest_mhz_;
  std::vector<double> known_;  ///< clocks of known kernels: 0 at ln(lowest), 1 at ln(asked)
  double weight_ = 1.0;        ///< of each: copies of one measurement count once
};

}  // namespace rubato
