#pragma once
// Coefficients of a kernel that was captured. They are anchored: at the clocks of the capture they
// return the captured time. What they add is how that time splits into a core part, a DRAM part and
// a fixed part. docs/models.md, "Captured kernels".

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// A launch as it was captured, alone on the GPU.
struct CapturePoint {
  ClockPair clock;             ///< requested, as in ClockGrid
  double time_s = 0.0;         ///< of one launch, > 0
  double power_limit_w = 0.0;  ///< the board's when captured, > 0
};

/// The same kernel with a given time and energy at one clock, whatever the power limit: for cells
/// that no formula made. Core, DRAM and fixed time keep their shares. Only DRAM traffic that would
/// take more than half of the energy is cut to that half.
/// @param time_s, energy_j  > 0
[[nodiscard]] KernelCoefficients held_to(const GpuSpec& spec, KernelCoefficients kernel,
                                         const ClockPair& clock, double time_s, double energy_j);

/// What the split of a captured time rests on, best first.
enum class SplitSource {
  fit,          ///< coefficients fitted to this kernel at several clocks
  counters,     ///< counted DRAM bytes
  work,         ///< FLOPs and bytes over the peaks of the kernel's type and path
  class_prior,  ///< a prior: what kernels of its class are like
  link          ///< bound by PCIe or by the link to other GPUs: clocks of the GPU hardly change it
};

struct AnchoredKernel {
  KernelCoefficients coefficients;
  SplitSource split = SplitSource::class_prior;
  bool flops_dropped = false;  ///< not used: they would have needed more than the GPU's peak
  bool bytes_dropped = false;  ///< the same of DRAM bytes
};

/// What a log said of a class; factor 1 without an error where none did.
[[nodiscard]] LoggedEnergy logged_energy(const GpuSpec& spec, KernelClass kind);

/// The same kernel as a whole slower or faster: its time at the captured clocks becomes the
/// captured one. Where the power limit binds, the captured clocks are those it lowers the core to.
/// Power at those clocks stays.
[[nodiscard]] KernelCoefficients scaled_to(const GpuSpec& spec, KernelCoefficients coefficients,
                                           const CapturePoint& at);

/// Coefficients of a captured kernel: those fitted to the kernel of its name, scaled as a whole
/// (scaled_to), else coefficients from its work and class. Core energies are as a log said where
/// there is one (GpuSpec::logged).
/// @param lean  where the split lies in the range that the known work leaves open, 0 to 1: 0 is as
///              much DRAM time as possible, 0.5 the best guess, 1 as much core time as possible.
///              Unknown work leaves the whole range open
[[nodiscard]] AnchoredKernel anchored(const GpuSpec& spec, const Kernel& kernel,
                                      const CapturePoint& at, double lean = 0.5);

}  // namespace rubato
