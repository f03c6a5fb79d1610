#pragma once
// Campaigns: cross-validation of intervals on a measured sweep. A GPU is fitted without some of its
// kernels. A few points of these are then taken as known. Their other points, and plans for them,
// are predicted with 90 % intervals. What was measured says how wide these must be.

#include <cstddef>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/confidence/confidence.hpp"
#include "models/calibration/sweep_fit.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// A GPU fitted without some of its kernels.
struct Campaign {
  GpuSpec fitted;
  Sweep others;  ///< what it was fitted to
  Sweep own;     ///< what was left out
};

/// A 90 % interval and what was measured, as changes in %.
struct Prediction {
  SavingInterval drawn;  ///< before it is scaled
  Cost estimate_pct;     ///< time and energy by the model that the plan was chosen with
  Cost measured_pct;
};

/// What a campaign predicts.
struct Predictions {
  std::vector<Prediction> cells;  ///< points that were left out, against the measured value
  std::vector<Prediction> plans;  ///< changes against the highest clocks, for left-out kernels
  /// For each draw of the models and their errors: if it was the truth, in all steps, how many
  /// plans would have it inside their interval of time, and of energy.
  std::vector<Cost> held_by_draw;
  GpuSpec spec;  ///< with the kernels as far as they were measured
};

/// Points with time and power, under the largest power cap, of kernels that have at least two.
[[nodiscard]] Sweep usable_points(Sweep sweep);

/// One campaign for each group: kernels k, k + groups, ... are left out of the GPU's fit. Fewer
/// groups if there are fewer kernels.
/// @throws UsageError if there are fewer kernels than two groups need
[[nodiscard]] std::vector<Campaign> fit_without_groups(const GpuSpec& frame, const Sweep& sweep,
                                                       std::size_t groups,
                                                       const SweepFitOptions& fit,
                                                       const RunContext& context = {});

/// Predicts what a campaign left out.
/// @param points   known of each kernel that was left out; 0: four fifths of its points
/// @param imagine  fill Predictions::held_by_draw
[[nodiscard]] Predictions play(const Campaign& campaign, std::size_t points,
                               const SweepFitOptions& fit, bool imagine = false);

/// Plays campaigns on a sweep and writes what they say into a spec that was fitted to it. That is
/// how far the model is off; and, for kernels with so many points, the factor on intervals with
/// which 90 % of them hold what was measured. Fewer than six usable kernels do not tell the factor;
/// one tells nothing.
/// @param points  as in play(), one factor for each
void learn_errors(const GpuSpec& frame, const Sweep& sweep, const std::vector<std::size_t>& points,
                  const SweepFitOptions& fit, GpuSpec& spec, const RunContext& context = {});

/// Key among fit_errors: how far below their time at the highest clock the times of a sweep lie
/// that are lowest of all at lower clocks, in % (fall_of_times_pct).
inline constexpr const char* time_fall_key = "time_fall_pct";

/// Lower clocks take no less time, but measured times scatter, and a clock that is set may not be
/// held. How far times of a sweep lie below those at the highest clock of their kernel and memory
/// clock, in %: the 95th percentile over all points at lower clocks. So low ends of 90 % intervals
/// that leave it out hold what is measured.
/// @return >= 0; 0 for a sweep without lower clocks
[[nodiscard]] double fall_of_times_pct(const Sweep& sweep);

/// Gives predictions their 90 % intervals. Where the GPU was fitted without the points (fits_gpu),
/// a kernel's intervals are drawn by the errors of all other tested kernels. Else they are as the
/// spec says, with its scales.
/// @param points  with the predictions of an ensemble's members, where there was one
void add_intervals(const GpuSpec& spec, const ValidationOptions& options,
                   std::vector<ValidatedPoint>& points);

}  // namespace rubato
