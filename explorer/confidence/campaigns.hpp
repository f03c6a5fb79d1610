#pragma once
// Campaigns to imagine: a GPU is fitted without some of its kernels, those are measured at a few
// points, and what is left of them, and plans for them, are predicted with intervals. What was
// measured says how wide these must be.

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

/// A 90 % interval and what was measured, in %.
struct Prediction {
  SavingInterval drawn;  ///< before it is scaled
  Cost estimate_pct;     ///< of time and energy, by the model the plan was chosen with
  Cost measured_pct;
};

/// What a campaign predicts.
struct Predictions {
  std::vector<Prediction> cells;  ///< points that were left out, against the measured value
  std::vector<Prediction> plans;  ///< changes against the highest clocks, for left-out kernels
  /// Were a draw of the models and their errors the truth, the same one in all steps: how many
  /// plans would have an interval of time and of energy that holds theirs, of each draw.
  std::vector<Cost> held_by_draw;
  GpuSpec spec;  ///< with the kernels as far as they were measured
};

/// Points with time and power, under the largest power cap, of kernels that have two.
[[nodiscard]] Sweep usable_points(Sweep sweep);

/// The GPU fitted without every `groups`-th kernel in turn.
/// @throws UsageError if there are fewer kernels than two groups need
[[nodiscard]] std::vector<Campaign> fit_without_groups(const GpuSpec& frame, const Sweep& sweep,
                                                       std::size_t groups,
                                                       const SweepFitOptions& fit,
                                                       const RunContext& context = {});

/// @param points   measured of each kernel that was left out; 0: four fifths of them
/// @param imagine  fill Predictions::held_by_draw
[[nodiscard]] Predictions play(const Campaign& campaign, std::size_t points,
                               const SweepFitOptions& fit, bool imagine = false);

/// Plays campaigns on a sweep and writes into a spec that was fitted to it how far the model is
/// off, and for kernels of so many points by what intervals must be multiplied so that 90 % of them
/// hold what was measured; sweeps of fewer than six usable kernels do not say the latter, those of
/// one say nothing.
/// @param points  as in play
void learn_errors(const GpuSpec& frame, const Sweep& sweep, const std::vector<std::size_t>& points,
                  const SweepFitOptions& fit, GpuSpec& spec, const RunContext& context = {});

/// Gives predictions their 90 % intervals. Where the GPU was fitted without the points (fits_gpu) a
/// kernel's are as wide as the errors of all others that were tested, as drawn; else as the spec
/// says, with its scales.
/// @param points  with what the members of an ensemble predict, where there was one
void add_intervals(const GpuSpec& spec, const ValidationOptions& options,
                   std::vector<ValidatedPoint>& points);

}  // namespace rubato
