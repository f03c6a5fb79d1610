#include "explorer/pipeline/cost_curve.hpp"

#include <algorithm>
#include <tuple>

namespace rubato {

namespace {

// Appends `point` to a lower hull of points in rising time, and removes the vertices that are then
// on or above the line to it.
void extend_hull(CostCurve& hull, const CurvePoint& point) {
  while (hull.size() > 1) {
    const CurvePoint &a = hull[hull.size() - 2], &b = hull.back();
    if ((b.cost_j - a.cost_j) * (point.time_s - a.time_s) <
        (point.cost_j - a.cost_j) * (b.time_s - a.time_s))
      break;
    hull.pop_back();
  }
  hull.push_back(point);
}

// How far the curve between two vertices is below the line from one to the other, at most. It is
// farthest where the curve is as steep as the line.
double chord_error_j(const CostCurve& curve, std::size_t from, std::size_t to) {
  const CurvePoint &a = curve[from], &b = curve[to];
  const double slope_w = (b.cost_j - a.cost_j) / (b.time_s - a.time_s);
  std::size_t low = from, high = to;
  while (high - low > 1) {
    const std::size_t k = (low + high) / 2;
    const bool steeper =
        curve[k].cost_j - curve[k - 1].cost_j < slope_w * (curve[k].time_s - curve[k - 1].time_s);
    (steeper ? low : high) = k;
  }
  return a.cost_j + slope_w * (curve[low].time_s - a.time_s) - curve[low].cost_j;
}

// The last vertex to which a line from vertex `from` stays within a tolerance. The error only grows
// with the distance, so steps may double, then halve.
std::size_t farthest_within(const CostCurve& curve, std::size_t from, double tolerance_j) {
  std::size_t reached = from + 1, step = 1;
  while (reached + step < curve.size() &&
         chord_error_j(curve, from, reached + step) <= tolerance_j) {
    reached += step;
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    if (reached + step < curve.size() && chord_error_j(curve, from, reached + step) <= tolerance_j)
      reached += step;
  }
  return reached;
}

}  // namespace

CostCurve lower_hull(std::span<const CurvePoint> points) {
  std::vector<CurvePoint> sorted(points.begin(), points.end());
  std::ranges::sort(sorted, {}, [](const CurvePoint& p) { return std::tuple(p.time_s, p.cost_j); });
  const double least_step_s = least_time_step * sorted.back().time_s;
  std::vector<CurvePoint> falling;
  for (const CurvePoint& p : sorted) {
    if (falling.empty()) {
      falling.push_back(p);
    } else if (p.cost_j < falling.back().cost_j) {
      if (p.time_s - falling.back().time_s < least_step_s) {
        falling.back().cost_j = p.cost_j;
      } else {
        falling.push_back(p);
      }
    }
  }
  CostCurve hull;
  for (const CurvePoint& p : falling) extend_hull(hull, p);
  return hull;
}

std::vector<CurvePoint> option_points(const PassType& type, double blocked_power_w) {
  std::vector<CurvePoint> points;
  for (const ClockOption& option : type.options) {
    points.push_back({option.time_s, option.energy_j - blocked_power_w * option.time_s});
  }
  return points;
}

CostCurve simplified(const CostCurve& curve, double tolerance_j) {
  CostCurve kept{curve.front()};
  std::size_t from = 0;
  while (from + 1 < curve.size()) {
    from = farthest_within(curve, from, tolerance_j);
    kept.push_back(curve[from]);
  }
  return kept;
}

double cost_at(const CostCurve& curve, double time_s) {
  if (time_s <= curve.front().time_s) return curve.front().cost_j;
  const auto next = std::ranges::lower_bound(curve, time_s, {}, &CurvePoint::time_s);
  if (next == curve.end()) return curve.back().cost_j;
  const CurvePoint& a = *(next - 1);
  return a.cost_j + (next->cost_j - a.cost_j) * (time_s - a.time_s) / (next->time_s - a.time_s);
}

}  // namespace rubato
