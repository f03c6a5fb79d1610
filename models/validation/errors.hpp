#pragma once
// Validation: how far a model is from measurements that were held out of its fit.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/calibration/sweep_fit.hpp"
#include "models/table/profile_table.hpp"

namespace rubato {

/// Which measurements a prediction may have seen.
enum class Holdout {
  known,       ///< none of the sweep: kernels of the spec, found by name
  few_points,  ///< some points of each kernel; the GPU's parameters come from the spec
  own_folds,   ///< the same, all points but those of one fold, fold after fold
  folds,       ///< k-fold cross-validation: all points but those of one fold, chosen at random
  clocks,      ///< the same, but a fold is a range of core clocks
  kernels,     ///< the GPU: all other kernels; a kernel: some of its own points
  power_caps,  ///< the points under the largest power cap
};
[[nodiscard]] std::string_view name_of(Holdout value) noexcept;

/// Ends of a 90 % interval.
struct IntervalEnds {
  double low = 0.0, high = 0.0;
};

/// One measured point and what the model says of it.
struct ValidatedPoint {
  std::string kernel;
  SweepPoint measured;
  OperatingPoint predicted;
  std::vector<Cost> drawn = {};  ///< by the members of the fit's ensemble, where asked for
  std::optional<IntervalEnds> time_90_s = {}, energy_90_j = {};  ///< 90 % intervals, if asked for

  [[nodiscard]] std::optional<double> time_error() const;  ///< predicted over measured - 1
  [[nodiscard]] std::optional<double> power_error() const;
  [[nodiscard]] std::optional<double> energy_error() const;
  [[nodiscard]] std::optional<double> measured_j() const;  ///< measured time x power
  /// Whether the interval holds what was measured; nothing where either is missing.
  [[nodiscard]] std::optional<bool> time_inside() const;
  [[nodiscard]] std::optional<bool> energy_inside() const;
};

struct ValidationOptions {
  Holdout holdout = Holdout::few_points;
  std::size_t points = 5;  ///< points of each kernel that a fit sees, for few_points and kernels
  std::size_t folds = 5;   ///< number of folds, of ranges of clocks, of groups of kernels
  SweepFitOptions fit = {};
  bool draws = false;  ///< fill ValidatedPoint::drawn
};

/// Whether the GPU itself is fitted without the points it is tested on. Its spec is then but a
/// frame: names, clocks and constants.
[[nodiscard]] bool fits_gpu(Holdout holdout) noexcept;

/// Fits as `options` say, and predicts what was held out.
/// @return the points that were held out, fold after fold, within each in the order of the sweep.
///         If the user asked to stop: those that were tested before
/// @throws UsageError if the sweep has no kernel, cap or point to hold out
[[nodiscard]] std::vector<ValidatedPoint> validate(const GpuSpec& spec, const Sweep& sweep,
                                                   const ValidationOptions& options,
                                                   const RunContext& context = {});

/// Absolute errors in %.
struct ErrorQuantiles {
  std::size_t count = 0;
  double mean = 0.0, p50 = 0.0, p90 = 0.0, worst = 0.0;  ///< p50: median, p90: 90th percentile
  std::optional<double> inside_pct = {};                 ///< share of intervals that hold, %
};

/// @param errors  relative, of either sign; empty gives zeros
[[nodiscard]] ErrorQuantiles error_quantiles(std::vector<double> errors);

/// Errors of a group of points.
struct ErrorSummary {
  std::string group;
  ErrorQuantiles time, power, energy;
};
[[nodiscard]] ErrorSummary summarise(std::string group, std::span<const ValidatedPoint> points);

/// Summaries of all points; by memory state and third of the core clock range; at the power limit
/// or not; by kernel, those with the largest mean errors of energy and power together first.
[[nodiscard]] std::vector<ErrorSummary> summaries(const GpuSpec& spec,
                                                  std::span<const ValidatedPoint> points);

/// Divides kernels at random into groups of even size, the same in every run.
/// @param groups  at most one per kernel are made
/// @return the group of each kernel, from 0 on
/// @throws UsageError for fewer than two kernels or groups
[[nodiscard]] std::vector<std::size_t> kernel_groups(std::size_t kernels, std::size_t groups);

/// `count` points of a kernel that say most about it when nothing else was measured. Farthest-point
/// sampling: the first is the highest clocks and power limit; each further one lies farthest from
/// those chosen, so corners come early.
[[nodiscard]] std::vector<std::size_t> spread_points(const GpuSpec& spec, const SweepKernel& kernel,
                                                     std::size_t count);

}  // namespace rubato
