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

/// What part of the error of a change far from the default clocks a change has: 0 where both come
/// to the same clock, and 1 from a third on, since predictions of neighbouring clocks err alike,
/// but never quite. Distances are of what was asked for: that the power limit leaves one clock is
/// the model's word too. Up to four times as much where one of two clocks in effect lies beyond
/// those the GPU was fitted at.
[[nodiscard]] double error_reach(const GpuSpec& spec, const ClockInEffect& usual,
                                 const ClockInEffect& chosen);

/// Of a clock against the grid's default one where no power limit lowers either.
[[nodiscard]] double error_reach(const GpuSpec& spec, const ClockGrid& grid, ClockId clock);

/// Of one kernel, at the clocks that the model's power limit leaves it.
[[nodiscard]] double error_reach(const GpuModel& model, const ClockGrid& grid, KernelId kernel,
                                 ClockId clock);

}  // namespace rubato
