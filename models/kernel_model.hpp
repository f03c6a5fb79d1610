#pragma once
// The formulas: time and energy of one launch at one clock. docs/models.md.

#include "models/clock_pair.hpp"
#include "models/gpu_spec.hpp"

namespace rubato {

/// What the GPU does for one launch of one kernel at one requested clock.
struct OperatingPoint {
  double time_s = 0.0;         ///< > 0
  double energy_j = 0.0;       ///< board energy of the launch, > 0
  double core_mhz = 0.0;       ///< effective core clock after clamps, boost ceiling and power limit
  bool power_limited = false;  ///< the power limit lowered the core clock
};

/// Core clock in effect for a request when power does not limit it, MHz.
[[nodiscard]] double effective_core_mhz(const GpuSpec& spec, const ClockPair& clock);

/// Core voltage relative to its floor in a memory state, >= 1.
[[nodiscard]] double relative_voltage(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// DRAM bandwidth a kernel can use, bytes/s: the memory's, or what the core
/// side carries at this clock, whichever is less, with a smooth transition.
[[nodiscard]] double dram_bandwidth(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// Board power with no kernel running, W.
[[nodiscard]] double idle_power_w(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// One launch at a core clock that is in effect, no power limit.
[[nodiscard]] OperatingPoint unlimited_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                             const MemState& mem, double core_mhz);

/// One launch at a requested clock. Where the board would draw more than the
/// limit allows, the core clock is lowered until it does not.
/// @param power_limit_w  replaces the spec's limit
[[nodiscard]] OperatingPoint operating_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                             const ClockPair& clock, double power_limit_w);

/// As operating_point under the spec's power limit, for measurements whose core
/// clock is the applied one: the boost ceiling does not lower it.
[[nodiscard]] OperatingPoint applied_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                           const ClockPair& clock);

}  // namespace rubato
