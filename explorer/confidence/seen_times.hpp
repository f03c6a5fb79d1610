#pragma once
// What times that were seen at several core clocks say of other clocks. docs/graphs.md, section 3.

#include <span>
#include <utility>

namespace rubato {

/// Time of a kernel that was seen.
struct SeenTime {
  double core_mhz = 0.0;  ///< > 0
  double time_s = 0.0;    ///< > 0
};

/// Between which times a kernel lies at a core clock: time grows with 1 / clock, ever faster, but
/// by no more than in proportion. So between two clocks it lies below the chord over 1 / clock,
/// beyond the lowest above the last chord.
/// @param seen  highest clock first, at least two, clocks differ
/// @return least and most, s
[[nodiscard]] std::pair<double, double> possible_times(std::span<const SeenTime> seen,
                                                       double core_mhz);

/// A draw of the time at a core clock. Between clocks that were seen most kernels lie near the
/// upper bound, beyond them near either.
/// @param quantile  0 to 1
[[nodiscard]] double drawn_time(std::span<const SeenTime> seen, double core_mhz, double quantile);

/// How far a core clock is from those seen: between two of them a * b / (a + b) of the logarithms
/// of the ratios to both; outside of them that to the nearest.
[[nodiscard]] double distance_to(std::span<const SeenTime> seen, double core_mhz);

}  // namespace rubato
