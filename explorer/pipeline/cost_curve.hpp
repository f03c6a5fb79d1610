#pragma once
// What slowing one pass down saves: the lower convex hull of its options in time and cost.

#include <span>
#include <vector>

#include "traces/pipeline/profile.hpp"

namespace rubato {

/// A vertex of a hull. `cost_j` is the energy beyond blocked power x time_s: a stage draws blocked
/// power whether it works or waits.
struct CurvePoint {
  double time_s = 0.0;
  double cost_j = 0.0;

  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// A convex falling curve: fastest vertex first, times rise, costs and savings per second fall. At
/// least one vertex.
using CostCurve = std::vector<CurvePoint>;

/// Points nearer to each other than this share of the longest time become one vertex. It has the
/// faster time and the lower cost, so the curve stays a lower bound. This limits the steepest
/// slope, so that slopes scaled to integers keep their digits.
inline constexpr double least_time_step = 1e-6;

/// Lower hull of points in any order, cut off at the least cost.
/// @param points  finite, times > 0, not empty
[[nodiscard]] CostCurve lower_hull(std::span<const CurvePoint> points);

/// A curve of fewer vertices, with the ends of `curve`. Its lines are at most `tolerance_j` above
/// `curve`. A greedy walk chooses the vertices: each as far from the one before as that allows.
[[nodiscard]] CostCurve simplified(const CostCurve& curve, double tolerance_j);

/// Time and cost (energy minus blocked power x time) of each option of a pass, in option order.
[[nodiscard]] std::vector<CurvePoint> option_points(const PassType& type, double blocked_power_w);

/// Cost at a time, linear between vertices; beyond an end of the curve the cost of that end.
[[nodiscard]] double cost_at(const CostCurve& curve, double time_s);

}  // namespace rubato
