#pragma once
// How much of the error of a change of clock a kernel has: small changes err less than large ones.

#include <algorithm>
#include <limits>
#include <vector>

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/plan.hpp"

namespace rubato {

/// Memory state and core clock that a kernel runs at.
struct ClockInEffect {
  MemStateId mem;
  double core_mhz;   ///< > 0, below what was asked for where the power limit lowers it
  double asked_mhz;  ///< without the power limit
};

[[nodiscard]] ClockInEffect clock_in_effect(const GpuSpec& spec, const ClockPair& asked,
                                            const OperatingPoint& point);

/// Factors on the logarithms of the errors of time and of energy; 0: no error.
struct ErrorReach {
  double time = 0.0, energy = 0.0;

  friend bool operator==(const ErrorReach&, const ErrorReach&) = default;
};

/// How much of the error of a far change this change of clock has: 0 if nothing changes. Else it
/// grows with the distance, from 0.6 for the nearest clocks to 1 for a clock 1.35 times as high or
/// as low, or farther. Predictions of neighbouring clocks err alike, but never quite.
/// The distance is of core clocks and of memory clocks together. Of core clocks it is the larger of
/// that of clocks asked for and that of clocks in effect: if a power limit leaves one clock of two,
/// that is the model's word too. Where one of two clocks in effect lies beyond those the GPU was
/// fitted at, errors also grow by growth_at().
[[nodiscard]] ErrorReach error_reach(const GpuSpec& spec, const ClockInEffect& usual,
                                     const ClockInEffect& chosen);

/// The same for a clock against the grid's default one, where no power limit lowers either; all of
/// it where the power limits differ.
[[nodiscard]] ErrorReach error_reach(const GpuSpec& spec, const ClockGrid& grid, ClockId clock);

/// The same for one kernel, at the clocks that the model's power limit leaves it.
[[nodiscard]] ErrorReach error_reach(const GpuModel& model, const ClockGrid& grid, KernelId kernel,
                                     ClockId clock);

/// Between which factors a kernel's time lies against another clock, whatever its model: a lower
/// core clock takes no less time, and no more than the clocks' ratio or that of the bandwidths.
struct TimeBand {
  double low = 0.0, high = std::numeric_limits<double>::infinity();

  [[nodiscard]] double cut(double time_s, double usual_s) const {
    return std::clamp(time_s, low * usual_s, high * usual_s);
  }
};

/// Under one power limit, whether it lowers the clocks or not: of clocks asked for, so also right
/// where the model errs about the clock that the limit leaves. In another memory state only from
/// below: bandwidth falls by more than the memory clock (measured: up to 31 % more).
[[nodiscard]] TimeBand time_band(const GpuSpec& spec, const ClockInEffect& usual,
                                 const ClockInEffect& chosen);

/// Under two power limits, W: under a lower one only from below, under a higher one only from
/// above.
[[nodiscard]] TimeBand time_band(const GpuSpec& spec, const ClockInEffect& usual,
                                 double usual_limit_w, const ClockInEffect& chosen,
                                 double chosen_limit_w);

/// What a plan's clocks do to a kernel.
struct KernelClockChange {
  ErrorReach reach;  ///< of several clocks the farthest counts
  TimeBand band;     ///< of all its launches together; of measured cells not bounded
};

/// Of every kernel of a trace, shape [kernels]. For measured cells the clocks asked for are taken,
/// since those in effect are not known.
[[nodiscard]] std::vector<KernelClockChange> changes_of_kernels(const Trace& trace,
                                                                const GpuModel& model,
                                                                const ClockGrid& grid,
                                                                const Plan& plan);

/// Time and energy under an error. @param logarithms  of the factors where reach is 1
[[nodiscard]] Cost with_error(const Cost& cost, const ErrorReach& reach, const Cost& logarithms);

}  // namespace rubato
