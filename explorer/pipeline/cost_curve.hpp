#pragma once
// What slowing one pass down saves: the lower convex hull of its options.

#include <span>
#include <utility>
#include <vector>

#include "traces/pipeline/profile.hpp"

namespace rubato {

/// A vertex of a hull. `cost_j` is the energy on top of blocked power, which a
/// stage draws whether it works or waits.
struct CurvePoint {
  double time_s = 0.0;
  double cost_j = 0.0;

  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// Convex and falling: fastest vertex first, times rise, costs and savings per
/// second fall. At least one vertex.
using CostCurve = std::vector<CurvePoint>;

/// Points nearer in time than this share of the longest are one vertex (the
/// faster time, the lower cost: still a lower bound). Bounds the steepest slope,
/// so that scaled slopes keep their digits.
inline constexpr double least_time_step = 1e-6;

/// Appends `point` to a hull of points in rising time and takes out what then lies on it or above.
/// @tparam Point  has `time_s` and `cost_j`
template <class Point>
void extend_hull(std::vector<Point>& hull, Point point) {
  while (hull.size() > 1) {
    const Point &a = hull[hull.size() - 2], &b = hull.back();
    if ((b.cost_j - a.cost_j) * (point.time_s - a.time_s) <
        (point.cost_j - a.cost_j) * (b.time_s - a.time_s))
      break;
    hull.pop_back();
  }
  hull.push_back(std::move(point));
}

/// Lower hull of points in any order, cut off at the least cost.
/// @param points  finite, times > 0, not empty
[[nodiscard]] CostCurve lower_hull(std::span<const CurvePoint> points);

/// The same ends and as few vertices of `curve` between them as a greedy walk needs so that the
/// lines are at most `tolerance_j` above it.
[[nodiscard]] CostCurve simplified(const CostCurve& curve, double tolerance_j);

/// Points of a pass: energy minus blocked power x time, option order.
[[nodiscard]] std::vector<CurvePoint> option_points(const PassType& type, double blocked_power_w);

/// Cost at a time between the first and last vertex, linear between vertices;
/// beyond the ends the cost of the end.
[[nodiscard]] double cost_at(const CostCurve& curve, double time_s);

}  // namespace rubato
