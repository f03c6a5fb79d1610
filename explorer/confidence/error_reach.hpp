#pragma once
// What part of the errors of a change of clock a kernel has.

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

/// Memory state and core clock that a kernel runs at.
struct ClockInEffect {
  MemStateId mem;
  double core_mhz;   ///< > 0, below what was asked for where the power limit lowers it
  double asked_mhz;  ///< without the power limit
};

[[nodiscard]] ClockInEffect clock_in_effect(const GpuSpec& spec, const ClockPair& asked,
                                            const OperatingPoint& point);

/// Parts of the errors of time and of energy; 0: the change has none.
struct ErrorReach {
  double time = 0.0, energy = 0.0;

  friend bool operator==(const ErrorReach&, const ErrorReach&) = default;
};

/// What part of the error of a change far from the default clocks a change has: 0 where both come
/// to the same clock, and 1 from a third on, since predictions of neighbouring clocks err alike,
/// but never quite. Distances are of what was asked for: that the power limit leaves one clock is
/// the model's word too. As many times as much as errors grow (growth_at) where one of two clocks
/// in effect lies beyond those the GPU was fitted at.
[[nodiscard]] ErrorReach error_reach(const GpuSpec& spec, const ClockInEffect& usual,
                                     const ClockInEffect& chosen);

/// Of a clock against the grid's default one where no power limit lowers either.
[[nodiscard]] ErrorReach error_reach(const GpuSpec& spec, const ClockGrid& grid, ClockId clock);

/// Of one kernel, at the clocks that the model's power limit leaves it.
[[nodiscard]] ErrorReach error_reach(const GpuModel& model, const ClockGrid& grid, KernelId kernel,
                                     ClockId clock);

/// Time and energy under an error. @param logarithms  of the factors where reach is 1
[[nodiscard]] Cost with_error(const Cost& cost, const ErrorReach& reach, const Cost& logarithms);

}  // namespace rubato
