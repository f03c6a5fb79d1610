#pragma once
// Whether intervals hold the truth: a sweep is measured in part, the rest and plans for it are
// predicted with intervals, and what was measured says how many of them are right.

#include <cstddef>
#include <limits>
#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep_fit.hpp"

namespace rubato {

/// In CoverageOptions::points: kernels whose time was captured at one clock, nothing else.
inline constexpr std::size_t captured_only = std::numeric_limits<std::size_t>::max();

struct CoverageOptions {
  /// Measured points of each kernel that the GPU's fit has not seen; 0: four fifths of them.
  std::vector<std::size_t> points{captured_only, 1, 3, 5, 0};
  std::size_t groups = 4;  ///< of kernels, each left out of the GPU's fit in turn
  SweepFitOptions fit = {};
  bool captures = true;  ///< plans of captured runs too
};

/// 5th and 95th percentile of a share.
struct ShareRange {
  double low = 0.0, high = 1.0;
};

/// Of predictions with a 90 % interval.
struct Covered {
  std::size_t count = 0;
  double time = 0.0, energy = 0.0;                      ///< share inside
  double time_width_pct = 0.0, energy_width_pct = 0.0;  ///< mean of high - low
  double time_bias_pct = 0.0, energy_bias_pct = 0.0;    ///< mean of measured - expected
  /// Of plans: share inside where truths are drawn as intervals are, so that these are right. A
  /// campaign's plans share its GPU and kernels, and one truth holds or misses many of them.
  ShareRange time_by_chance = {}, energy_by_chance = {};
};

struct CoverageRow {
  std::size_t points = 0;  ///< of each kernel, as in CoverageOptions
  Covered cells;           ///< points that were left out
  Covered plans;           ///< changes against the highest clocks of plans for left-out kernels
  Covered captured;        ///< the same of steps that were captured at the highest clocks
};

/// Plays the campaigns. Points under power caps below the largest are left aside.
/// @throws UsageError if there are fewer kernels than two groups need
[[nodiscard]] std::vector<CoverageRow> measure_coverage(const GpuSpec& frame, const Sweep& sweep,
                                                        const CoverageOptions& options = {},
                                                        const RunContext& context = {});

}  // namespace rubato
