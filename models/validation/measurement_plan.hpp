#pragma once
// Which clocks to measure next, for the most certain plan: optimal design, one clock pair at a
// time, for the change of time and energy of the plan and of the clocks it might have instead.

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
  double change_sigma_pct = 0.0;  ///< standard error of a change once it is measured
};

struct MeasurementPlan {
  double sigma_now_pct = 0.0;          ///< with what is known now
  std::vector<SuggestedPoint> points;  ///< distinct clocks in effect, in the fitted range
  double sigma_full_pct = 0.0;         ///< with the whole grid measured
};

/// First the default clocks, which every change is against, another core clock and another memory
/// clock, unless the first was measured; then any clock greedily.
/// @param measured  points there are already, by kernel name; nullptr: none
/// @param noise     relative standard error of a measured time and power, > 0
/// Source: greedy sequential design for a mean variance (L-optimality), e.g. Pukelsheim, Optimal
/// Design of Experiments, 2006, ch. 2.
[[nodiscard]] MeasurementPlan suggest_measurements(const GpuModel& model, const Trace& trace,
                                                   const ClockGrid& grid,
                                                   const PlannedKernels& plan,
                                                   const Sweep* measured, double noise,
                                                   std::size_t count);

}  // namespace rubato
