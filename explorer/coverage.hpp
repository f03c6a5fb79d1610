#pragma once
// Coverage: how often 90 % intervals hold the truth. A part of a measured sweep is taken as known.
// The rest, and plans for it, are predicted with intervals. The measurements left out say how many
// of these are right.

#include <cstddef>
#include <limits>
#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep_fit.hpp"

namespace rubato {

/// In CoverageOptions::points: kernels whose time was captured at one clock, nothing else.
inline constexpr std::size_t captured_only = std::numeric_limits<std::size_t>::max();

struct CoverageOptions {
  /// Points that are known of each kernel that the GPU's fit has not seen; 0: four fifths of its
  /// points. One row of the result for each.
  std::vector<std::size_t> points{captured_only, 1, 3, 5, 0};
  std::size_t groups = 4;  ///< of kernels, each left out of the GPU's fit in turn
  SweepFitOptions fit = {};
  bool captures = true;  ///< plans of captured runs too
};

/// 5th and 95th percentile of a share, 0 to 1.
struct ShareRange {
  double low = 0.0, high = 1.0;
};

/// Of predictions with a 90 % interval.
struct Covered {
  std::size_t count = 0;
  double time = 0.0, energy = 0.0;                      ///< share inside
  double time_width_pct = 0.0, energy_width_pct = 0.0;  ///< mean of high - low
  double time_bias_pct = 0.0, energy_bias_pct = 0.0;    ///< mean of measured - expected
  /// Of plans: the share inside that chance allows if the intervals are right, found with truths
  /// that are drawn as the intervals are. It varies: plans of a campaign share its GPU and kernels,
  /// so one truth lies inside or outside many of their intervals.
  ShareRange time_by_chance = {}, energy_by_chance = {};
};

struct CoverageRow {
  std::size_t points = 0;  ///< of each kernel, as in CoverageOptions
  Covered cells;           ///< points that were left out
  Covered plans;           ///< changes against the highest clocks of plans for left-out kernels
  Covered captured;        ///< the same of steps that were captured at the highest clocks
  Covered captured_twice = {};  ///< and at about three quarters of them; of captured_only
};

/// Plays the campaigns (explorer/confidence/campaigns.hpp). Points under power caps below the
/// largest are left aside.
/// @throws UsageError if there are fewer kernels than two groups need
[[nodiscard]] std::vector<CoverageRow> measure_coverage(const GpuSpec& frame, const Sweep& sweep,
                                                        const CoverageOptions& options = {},
                                                        const RunContext& context = {});

}  // namespace rubato
