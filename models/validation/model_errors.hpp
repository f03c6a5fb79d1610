#pragma once
// How far a model is from what it has not seen, in two parts (variance components). One part is
// common to all kernels: a sum over kernels does not average it away. The other is each kernel's
// own. docs/models.md, section 6.

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

/// Calibration of 90 % intervals: by which factor they must be widened to hold 90 % of what
/// campaigns played on the GPU's own sweep measured (learn_errors). 1 where none was played.
struct IntervalScales {
  RelativeErrors cells{1.0, 1.0};  ///< of a kernel at a clock
  RelativeErrors plans{1.0, 1.0};  ///< of the change of a plan that was chosen on the model
};

/// Scales that may widen an interval, but not narrow it: for intervals over kernels other than
/// those that campaigns played.
[[nodiscard]] constexpr RelativeErrors widening_only(const RelativeErrors& scale) {
  return {scale.time < 1.0 ? 1.0 : scale.time, scale.energy < 1.0 ? 1.0 : scale.energy};
}

/// Errors of predicted times and energies at a clock.
struct ModelErrors {
  RelativeErrors shared;  ///< standard deviation of the part common to all kernels
  RelativeErrors own;     ///< own part: scale of Student's t with `own_freedom` degrees of freedom
  IntervalScales scales = {};
};

/// Degrees of freedom of a Student's t with the tails that residuals have: a few kernels are far
/// off, most are not.
inline constexpr int own_freedom = 4;
inline constexpr double own_90_pct = 2.1318;  ///< nine in ten of its draws are smaller in size

/// Both parts from predictions of points that were held out. If no clock has four kernels or more,
/// nothing tells the parts apart, and each gets half of the variance.
[[nodiscard]] ModelErrors estimate_errors(std::span<const ValidatedPoint> points);

/// Writes both parts into the spec's fit_errors: "shared_time_pct" and so on.
void write_errors(const ModelErrors& errors, GpuSpec& spec);

/// Of a spec whose kernels are to be fitted anew on another fit's parameters: leaves out the errors
/// that were reported of that fit, and keeps what intervals rest on (both parts, scales, growth).
void drop_reported_errors(GpuSpec& spec);

/// Raises both parts, where they are smaller, to those of predictions of points that were held out.
void raise_errors(std::span<const ValidatedPoint> points, GpuSpec& spec);

/// Key among fit_errors: how many points the kernel with the fewest had, of those that the scales
/// of whole sweeps ("..._scale_many") were learned from.
inline constexpr const char* scale_many_points_key = "scale_many_points";

/// Writes scales of kernels with so many points into the spec's fit_errors: "plans_time_scale_3".
/// @param points  0: whole sweeps
void write_scales(const IntervalScales& scales, std::size_t points, GpuSpec& spec);

/// How much wider a 90 % prediction interval of the next draw is where the Gaussian is known from
/// `count` draws only: the quantile of Student's t times sqrt(1 + 1 / count), over the quantile of
/// a Gaussian. 1 for fewer than two draws, which tell nothing.
[[nodiscard]] double few_draws_factor(std::size_t count);

/// Errors of a spec. Both parts: what write_errors wrote, the own part widened for the few kernels
/// it was learned from (few_draws_factor); else the spec's mean errors on points held out, half of
/// the variance shared; for a spec that was never fitted 10 % of time and 15 % of energy, halved
/// likewise. Scales: those of campaigns whose kernels had as many points as the spec's, or fewer.
/// From ten points on, but fewer than whole sweeps had: the wider of those of five points and of
/// whole sweeps.
[[nodiscard]] ModelErrors model_errors(const GpuSpec& spec);

/// Whether errors of `quantity`, "time" or "energy", come from measurements that the spec was
/// tested on.
[[nodiscard]] bool are_learned(const GpuSpec& spec, const char* quantity);

/// Standard deviations of one cell of a profile table, both parts together.
[[nodiscard]] RelativeErrors cell_errors(const GpuSpec& spec);

}  // namespace rubato
