#pragma once
// Kernels of one step fitted to captures of it at several clocks: times per kernel, energies per
// class from power logs. How a GPU is calibrated without micro-benchmarks. docs/models.md.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "traces/capture_match.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// What one reading of a power log averages.
struct PowerWindow {
  std::vector<double> share;  ///< of the window in which each kernel ran, shape [kernels]
  double power_w = 0.0;       ///< mean over the window, as the sensor said
};

/// One capture of the step.
struct CaptureObservation {
  ClockPair clock;                                ///< requested
  std::vector<std::optional<TypicalTime>> times;  ///< shape [kernels]
  std::vector<PowerWindow> power;                 ///< empty: no log
};

/// What the logs say of a class.
struct ClassEnergy {
  KernelClass kind = KernelClass::other;
  double factor = 1.0;          ///< of the core energy that work and class let expect
  double relative_error = 0.0;  ///< standard error
  bool measured = false;        ///< the logs say more of it than was expected before
};

struct CaptureFit {
  GpuSpec spec;  ///< the frame with the step's kernels, their draws, and its base power corrected
  double base_power_offset_w = 0.0;
  std::vector<ClassEnergy> classes;  ///< that occur
  double time_error = 0.0;   ///< of fitted over observed times, mean absolute, weighed by time
  double power_error = 0.0;  ///< of windows, mean absolute; 0 without a log
};

/// Fits cycles, DRAM bytes and fixed time of every kernel of `step`; where captures leave freedom a
/// kernel is like anchored() has it. Core energies are scaled by class, and base power is shifted,
/// so that the windows come out.
/// @param frame  the GPU; its own kernels are left out
/// @param step   kernels and their work; names of the fitted kernels
/// @throws DataError if no kernel was observed
[[nodiscard]] CaptureFit fit_captures(const GpuSpec& frame, const Trace& step,
                                      std::span<const CaptureObservation> captures);

}  // namespace rubato
