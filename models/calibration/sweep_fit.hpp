#pragma once
// Fits a GPU and its kernels to a sweep, or only kernels, to few points, with the GPU given. The
// method: nonlinear least squares (Levenberg and Marquardt) in logarithms with a robust loss and
// Gaussian priors, from several starts per kernel; deterministic. docs/models.md, section 6.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep.hpp"
#include "models/gpu/spec.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

/// Assumptions of a fit.
struct SweepFitOptions {
  double time_sigma = 0.01;   ///< relative standard deviation of a time, model error included
  double power_sigma = 0.01;  ///< the same for powers
  int rounds = 2;             ///< of restarting every kernel from several points
  int ensemble = 16;          ///< draws that carry the uncertainty (GpuSpec::ensemble); 0: none
  /// Core clocks at which the voltage and crossbar curves have their points, ascending, at least
  /// two; empty: up to twelve of the swept ones. Few points are right where the sweep is noisy or
  /// of one kernel.
  std::vector<double> curve_core_mhz = {};
  bool power_only =
      false;  ///< fit the voltage, core and base power; times and DRAM stay the frame's
};

/// A fitted parameter with its 95 % interval.
struct FittedParameter {
  std::string name;
  std::string unit;
  double value = 0.0, low = 0.0, high = 0.0;
  bool identified = true;  ///< false: the points say little more than the prior does
};

/// Result of a calibration.
struct SweepFit {
  GpuSpec spec;
  std::vector<FittedParameter> parameters;
  std::vector<std::string> notes;  ///< what the points cannot tell
};

/// Core clocks that the points name, MHz, ascending: those without one have the driver's choice.
[[nodiscard]] std::vector<double> swept_core_mhz(const Sweep& sweep);

/// Fits everything: the GPU's parameters and its kernels.
/// @param frame  names, clocks, memory states, sheet bandwidths, power limit; its fitted numbers
///               are ignored
/// @throws DataError if no point has a core clock in MHz, UsageError if curve_core_mhz does not
///         ascend or has one point only
[[nodiscard]] SweepFit calibrate_sweep(const GpuSpec& frame, const Sweep& sweep,
                                       const SweepFitOptions& options = {},
                                       const RunContext& context = {});

/// Fits the kernels of a sweep with the GPU's parameters fixed; few points do.
/// Where points leave freedom, kernels are like those the spec knows.
[[nodiscard]] std::vector<CalibratedKernel> fit_kernels(const GpuSpec& spec, const Sweep& sweep,
                                                        const SweepFitOptions& options = {});

/// Key among fit_errors, of a spec whose kernels were fitted to few points: how many points the
/// kernel with the fewest had.
inline constexpr const char* kernel_points_key = "kernel_points";

/// Key among fit_errors: how many kernels the errors were learned from, copies of one measurement
/// counted once (without_copies).
inline constexpr const char* distinct_kernels_key = "distinct_kernels";

/// The spec with the kernels of a sweep, in place of those of the same names. Its ensemble gets
/// draws of these kernels, which differ in what few points leave open.
/// @param time_error, power_error  relative standard errors of a measured number, those of the
///                                 model's form included
[[nodiscard]] GpuSpec with_kernels(GpuSpec spec, const Sweep& sweep, const SweepFitOptions& options,
                                   double time_error, double power_error);

/// What the model says of a measured point.
[[nodiscard]] OperatingPoint predict(const GpuSpec& spec, const KernelCoefficients& kernel,
                                     const SweepPoint& point, bool applied_clock);

}  // namespace rubato
