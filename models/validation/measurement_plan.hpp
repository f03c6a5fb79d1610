#pragma once
// Which clocks to measure next: optimal experimental design, one clock pair at a time. What shall
// become certain is the change of time and energy of a plan, and of the clocks it might have
// instead.

#include <cstddef>
#include <optional>
#include <vector>

#include "models/calibration/sweep.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

/// The plan whose saving is to be known.
struct PlannedKernels {
  std::vector<ClockId> clock;    ///< shape [kernels]
  std::vector<double> launches;  ///< shape [kernels]
};

/// A clock pair to measure every kernel at.
struct SuggestedPoint {
  ClockId clock;
  double change_sigma_pct = 0.0;  ///< standard error of the changes once this is measured too, %
};

struct MeasurementPlan {
  double sigma_now_pct = 0.0;          ///< standard error of the changes with what is known, %
  std::vector<SuggestedPoint> points;  ///< distinct clocks in effect, in the fitted range
  double sigma_full_pct = 0.0;         ///< standard error with all such clocks measured, %
};

/// Suggests up to `count` clock pairs. If the default clocks, which every change is against, were
/// not measured: first these, then another core clock, then another memory clock. All others
/// greedily: the clock pair that lowers the variance most.
/// @param measured  points there are already, by kernel name; null: none
/// @param noise     relative standard error of a measured time and power, > 0
/// @throws UsageError if `noise` is not > 0
/// Source: greedy sequential design for a mean variance (L-optimality), e.g. Pukelsheim, Optimal
/// Design of Experiments, 2006, ch. 2.
[[nodiscard]] MeasurementPlan suggest_measurements(const GpuModel& model, const Trace& trace,
                                                   const ClockGrid& grid,
                                                   const PlannedKernels& plan,
                                                   const Sweep* measured, double noise,
                                                   std::size_t count);

}  // namespace rubato
