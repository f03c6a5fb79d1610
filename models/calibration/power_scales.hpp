#pragma once
// What power logs say of kernels: factors on the core energies of their classes, and what a GPU
// draws that waits. The one fit behind `calibrate --captures` and `--power`. docs/replay.md.

#include <cstddef>
#include <span>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// One reading of a power log, and the window of time that it averages.
struct PowerWindow {
  std::vector<double> share;  ///< of the window in which each kernel ran, shape [kernels]
  double power_w = 0.0;       ///< mean over the window, as the sensor said
};

/// The readings of one run.
struct LoggedWindows {
  ClockPair clock;  ///< requested
  std::span<const PowerWindow> windows;
};

/// A kernel as windows count it.
struct WindowedKernel {
  KernelClass kind = KernelClass::other;
  KernelCoefficients coefficients;
};

struct PowerScales {
  std::vector<double> factor;  ///< on the core energy of each class, > 0, shape [classes]
  std::vector<double> sigma;   ///< standard error of the factor, shape [classes]
  double offset_w = 0.0;       ///< of the base power while kernels run
  double waiting_w = 0.0;      ///< of the power while none does, beyond waiting_power_w
  double waiting_sigma_w = 0.0;
  double mean_error = 0.0;  ///< mean |fitted / read - 1| of the windows
  std::size_t windows = 0;
};

/// Standard error of a class's factor before any reading.
inline constexpr double unread_core_energy = 0.56;

/// What is expected where nothing was read.
[[nodiscard]] PowerScales unscaled_powers();

/// Fits power = idle and DRAM power of what runs + factor x its core power, or the power of waiting
/// where nothing runs: linear least squares with a Gaussian prior at what is expected (ridge
/// regression). So classes that always run together move together. Part of every factor is common
/// to all classes: where the expectation is wrong for one class, it is wrong for the others too.
/// What waiting draws is a number of its own, so that a GPU that rests deeper than the spec says
/// moves nothing of what kernels draw.
/// @param kernels  as in the windows' shares
[[nodiscard]] PowerScales scale_powers(const GpuSpec& spec, std::span<const WindowedKernel> kernels,
                                       std::span<const LoggedWindows> runs);

/// The spec with waiting power as read, where readings tell it; its curve over clocks is kept, as a
/// whole higher or lower.
/// @param clock  at which it was read
[[nodiscard]] GpuSpec with_waiting_power(GpuSpec spec, const PowerScales& scales,
                                         const ClockPair& clock);

}  // namespace rubato
