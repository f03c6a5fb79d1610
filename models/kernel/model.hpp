#pragma once
// Time and energy of one launch at one clock, the power limit included. The formulas are those of
// cell_formulas.hpp. docs/models.md.

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// What the GPU does for one launch of one kernel at one requested clock.
struct OperatingPoint {
  double time_s = 0.0;         ///< > 0
  double energy_j = 0.0;       ///< board energy of the launch, > 0
  double core_mhz = 0.0;       ///< effective core clock after clamps, boost ceiling and power limit
  bool power_limited = false;  ///< the power limit lowered the core clock
};

/// What a GPU offers any kernel at one memory state and core clock in effect.
struct ClockState {
  double core_mhz = 0.0;
  double s_per_cycle = 0.0;
  double s_per_byte = 0.0;    ///< of DRAM traffic
  double log2_balance = 0.0;  ///< log2 of s_per_cycle / s_per_byte
  double dram_bytes_per_s = 0.0;
  double idle_w = 0.0;           ///< board power with no kernel running
  double squared_voltage = 0.0;  ///< relative to the floor
  double dram_j_per_byte = 0.0;
  double overlap_exponent = 0.0;  ///< of a kernel with overlap_scale 1
};

/// Core clock in effect for a request when power does not limit it, MHz.
[[nodiscard]] double effective_core_mhz(const GpuSpec& spec, const ClockPair& clock);

/// As above for an application clock, one that was observed to be in effect: boost and driver
/// ceilings do not lower it.
[[nodiscard]] double applied_core_mhz(const GpuSpec& spec, const ClockPair& clock);

/// Core voltage relative to its floor in a memory state, >= 1.
[[nodiscard]] double relative_voltage(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// DRAM bandwidth a kernel can use, bytes/s: the soft minimum of the memory's and of what the core
/// side carries at this clock.
[[nodiscard]] double dram_bandwidth(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// Board power with no kernel running, W: of it a kernel's energy has its share as long as it runs.
[[nodiscard]] double idle_power_w(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// What a GPU draws that waits, W: as measured, else idle_power_w. In another memory state than the
/// default one by as much more or less as the base power differs.
[[nodiscard]] double waiting_power_w(const GpuSpec& spec, const MemState& mem, double core_mhz);

[[nodiscard]] ClockState clock_state(const GpuSpec& spec, const MemState& mem, double core_mhz);

/// The same for a clock pair.
/// @param applied_clock  whether it was set as application clocks are (applied_core_mhz)
[[nodiscard]] ClockState clock_state(const GpuSpec& spec, const ClockPair& clock,
                                     bool applied_clock);

/// One launch at a core clock that is in effect, no power limit.
[[nodiscard]] OperatingPoint unlimited_point(const ClockState& state,
                                             const KernelCoefficients& kernel);

/// Whether the board draws no more than the power limit lets this kernel draw.
[[nodiscard]] bool within_limit(const GpuSpec& spec, const KernelCoefficients& kernel,
                                const OperatingPoint& point, double limit_w);

/// One launch of a kernel that the power limit slows down: at the highest core clock within the
/// limit, or at the lowest clock of the GPU. Requests for any higher clock end here.
[[nodiscard]] OperatingPoint regulated_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                             const MemState& mem, double limit_w);

/// One launch at `state` or, where the board would draw more there than `limit_w` allows, at the
/// regulated point.
/// @param limit_w  board power limit; power settles at the spec's regulated_frac of it
[[nodiscard]] OperatingPoint limited_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                           const MemState& mem, const ClockState& state,
                                           double limit_w);

/// One launch at a requested clock under a power limit.
/// @param power_limit_w  replaces the spec's limit, where the clock pair has none
[[nodiscard]] OperatingPoint operating_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                             const ClockPair& clock, double power_limit_w);

/// As operating_point under the spec's power limit, for measurements whose core
/// clock is the applied one: the boost ceiling does not lower it.
[[nodiscard]] OperatingPoint applied_point(const GpuSpec& spec, const KernelCoefficients& kernel,
                                           const ClockPair& clock);

}  // namespace rubato
