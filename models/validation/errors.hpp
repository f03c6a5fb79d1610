#pragma once
// How far a model is from measurements it was not fitted to.

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
  folds,       ///< all points but those of one fold; everything is fitted anew
  clocks,      ///< the points outside one range of core clocks; everything is fitted anew
  kernels,     ///< GPU: all other kernels; kernel: some of its points
  power_caps,  ///< the points under the largest cap
};
[[nodiscard]] std::string_view name_of(Holdout value) noexcept;

/// Of a 90 % interval.
struct IntervalEnds {
  double low = 0.0, high = 0.0;
};

/// One measured point and what the model says of it.
struct ValidatedPoint {
  std::string kernel;
  SweepPoint measured;
  OperatingPoint predicted;
  std::vector<Cost> drawn = {};  ///< by the members of the fit's ensemble, where asked for
  std::optional<IntervalEnds> time_90_s = {}, energy_90_j = {};  ///< where they were asked for

  [[nodiscard]] std::optional<double> time_error() const;  ///< predicted over measured - 1
  [[nodiscard]] std::optional<double> power_error() const;
  [[nodiscard]] std::optional<double> energy_error() const;
  [[nodiscard]] std::optional<double> measured_j() const;
  /// The interval holds what was measured; nothing where either is missing.
  [[nodiscard]] std::optional<bool> time_inside() const;
  [[nodiscard]] std::optional<bool> energy_inside() const;
};

struct ValidationOptions {
  Holdout holdout = Holdout::few_points;
  std::size_t points = 5;  ///< per kernel, for few_points and kernels
  std::size_t folds = 5;   ///< for folds, ranges of clocks and groups of kernels
  SweepFitOptions fit = {};
  bool draws = false;  ///< fill ValidatedPoint::drawn
};

/// The GPU is fitted without the points it is tested on: the spec is a frame and no more.
[[nodiscard]] bool fits_gpu(Holdout holdout) noexcept;

/// @return the points that were held out, in the order of the sweep; once the user asked to stop,
///         those that were tested before
/// @throws UsageError if the sweep has no kernel, cap or point to hold out
[[nodiscard]] std::vector<ValidatedPoint> validate(const GpuSpec& spec, const Sweep& sweep,
                                                   const ValidationOptions& options,
                                                   const RunContext& context = {});

/// Absolute errors in %.
struct ErrorQuantiles {
  std::size_t count = 0;
  double mean = 0.0, p50 = 0.0, p90 = 0.0, worst = 0.0;
  std::optional<double> inside_pct = {};  ///< of points with an interval, those that it holds
};

/// @param errors  relative, of either sign; empty gives zeros
[[nodiscard]] ErrorQuantiles error_quantiles(std::vector<double> errors);

/// Errors of a group of points.
struct ErrorSummary {
  std::string group;
  ErrorQuantiles time, power, energy;
};
[[nodiscard]] ErrorSummary summarise(std::string group, std::span<const ValidatedPoint> points);

/// All points; by memory state and third of the core clock range; at the power
/// limit or not; by kernel, the worst energy first.
[[nodiscard]] std::vector<ErrorSummary> summaries(const GpuSpec& spec,
                                                  std::span<const ValidatedPoint> points);

/// Group of each of so many kernels, 0 to groups - 1 (at most one per kernel), as even as can be,
/// always the same. @throws UsageError for fewer than two kernels
[[nodiscard]] std::vector<std::size_t> kernel_groups(std::size_t kernels, std::size_t groups);

/// The `count` points of a kernel that say most about it when nothing else was
/// measured: corners of the clocks and power limits first.
[[nodiscard]] std::vector<std::size_t> spread_points(const GpuSpec& spec, const SweepKernel& kernel,
                                                     std::size_t count);

}  // namespace rubato
