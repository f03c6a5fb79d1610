#pragma once
// Kernels of one step fitted to captures of that step at several clocks: times per kernel, energies
// per class from power logs. So a GPU is calibrated without micro-benchmarks. docs/models.md.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/calibration/power_scales.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "traces/capture_match.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// One capture of the step.
struct CaptureObservation {
  ClockPair clock;                                ///< requested
  std::vector<std::optional<TypicalTime>> times;  ///< shape [kernels]
  std::vector<PowerWindow> power;                 ///< empty: no log
};

/// What the logs say of a class.
struct ClassEnergy {
  KernelClass kind = KernelClass::other;
  double factor = 1.0;          ///< core energy over that which work and class let expect
  double relative_error = 0.0;  ///< standard error of the factor, over the factor
  bool measured = false;        ///< the logs tell it: the standard error is well below the prior's
};

struct CaptureFit {
  GpuSpec spec;  ///< the frame with base power corrected, the step's kernels and an ensemble
  double base_power_offset_w = 0.0;
  std::vector<ClassEnergy> classes;  ///< that occur
  double time_error = 0.0;           ///< mean |fitted / observed - 1| of times, weighted by time
  double power_error = 0.0;          ///< mean |fitted / read - 1| of windows; 0 without a log
};

/// Core clocks in effect, MHz, of the captures that a spec's kernels were fitted to, in their
/// order: there times are known. Empty: its kernels were not fitted to captures.
[[nodiscard]] std::vector<double> captured_core_mhz(const GpuSpec& spec);

/// Of how many of these captures power logs were read too.
[[nodiscard]] std::size_t captured_powers(const GpuSpec& spec);

/// Fits cycles, DRAM bytes and fixed time of every kernel of `step`. Where captures leave freedom,
/// a kernel is as anchored() has it (the prior). Core energies are scaled by class, and base power
/// is shifted, to fit the power of the windows.
/// @param frame  the GPU; its own kernels are left out
/// @param step   kernels and their work; names of the fitted kernels
/// @throws DataError if no kernel was observed
[[nodiscard]] CaptureFit fit_captures(const GpuSpec& frame, const Trace& step,
                                      std::span<const CaptureObservation> captures);

}  // namespace rubato
