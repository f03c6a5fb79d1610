#pragma once
// How far a model is from what it has not seen: a part that all kernels share, which no sum over
// kernels averages away, and a part of each kernel's own. docs/models.md, section 6.

#include <cstddef>
#include <span>

#include "models/gpu/spec.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// Relative errors.
struct RelativeErrors {
  double time = 0.0;
  double energy = 0.0;
};

/// How many times as wide as they are drawn 90 % intervals must be to hold 90 % of what campaigns
/// on the GPU's own sweep measured (learn_errors); 1 where none was played.
struct IntervalScales {
  RelativeErrors cells{1.0, 1.0};  ///< of a kernel at a clock
  RelativeErrors plans{1.0, 1.0};  ///< of the change of a plan that was chosen on the model
};

/// Where others than the kernels of campaigns are in it, scales may widen an interval, not narrow
/// it.
[[nodiscard]] constexpr RelativeErrors widening_only(const RelativeErrors& scale) {
  return {scale.time < 1.0 ? 1.0 : scale.time, scale.energy < 1.0 ? 1.0 : scale.energy};
}

/// Of predicted times and energies at a clock.
struct ModelErrors {
  RelativeErrors shared;  ///< standard deviation of what all kernels have in common at a clock
  RelativeErrors own;     ///< scale of Student's t with `own_freedom` degrees, for each kernel
  IntervalScales scales = {};
};

/// Residuals have the tails of this t: a few kernels are far off, most are not.
inline constexpr int own_freedom = 4;
inline constexpr double own_90_pct = 2.1318;  ///< what nine in ten of its draws are below

/// Both parts from predictions of points that were held out. With fewer than four kernels at a
/// clock nothing tells them apart, and they count the same.
[[nodiscard]] ModelErrors estimate_errors(std::span<const ValidatedPoint> points);

/// Kept among the spec's fit_errors: "shared_time_pct" and so on.
void write_errors(const ModelErrors& errors, GpuSpec& spec);

/// Among fit_errors: the points of the kernels that the scales of whole sweeps ("..._scale_many")
/// were learned from, the least of them.
inline constexpr const char* scale_many_points_key = "scale_many_points";

/// Kept among the spec's fit_errors for kernels of so many points: "plans_time_scale_3".
/// @param points  0: whole sweeps
void write_scales(const IntervalScales& scales, std::size_t points, GpuSpec& spec);

/// How much wider the inner 90 % of a Gaussian are where its spread is known from `count` draws: of
/// the next draw, by Student's t over a Gaussian. 1 for fewer than two, which tell nothing.
[[nodiscard]] double few_draws_factor(std::size_t count);

/// What write_errors wrote, the own part wider the fewer kernels it was learned from; else the
/// spec's mean errors on points held out, half of the variance shared; 10 and 15 % for a spec that
/// was never fitted. Scales are those of kernels with as many points as the spec's, or fewer; from
/// ten points on, but fewer than campaigns of whole sweeps had, the wider of both neighbours.
[[nodiscard]] ModelErrors model_errors(const GpuSpec& spec);

/// Whether errors of `quantity`, "time" or "energy", come from measurements that the spec was
/// tested on.
[[nodiscard]] bool are_learned(const GpuSpec& spec, const char* quantity);

/// Of one cell of a profile table, all parts together.
[[nodiscard]] RelativeErrors cell_errors(const GpuSpec& spec);

}  // namespace rubato
