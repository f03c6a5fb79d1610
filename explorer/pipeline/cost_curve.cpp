#include "explorer/pipeline/cost_curve.hpp"

#include <algorithm>
#include <tuple>

namespace rubato {

namespace {

// Whether b lies on or above the line from a to c.
bool is_above(const CurvePoint& a, const CurvePoint& b, const CurvePoint& c) {
  return (b.cost_j - a.cost_j) * (c.time_s - a.time_s) >=
         (c.cost_j - a.cost_j) * (b.time_s - a.time_s);
}

// How far the vertices between two others are below the line from one to the other.
double chord_error_j(const CostCurve& curve, std::size_t from, std::size_t to) {
  const CurvePoint &a = curve[from], &b = curve[to];
  const double slope_w = (b.cost_j - a.cost_j) / (b.time_s - a.time_s);
  double error_j = 0.0;
  for (std::size_t k = from + 1; k < to; ++k) {
    const double line_j = a.cost_j + slope_w * (curve[k].time_s - a.time_s);
    error_j = std::max(error_j, line_j - curve[k].cost_j);
  }
  return error_j;
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
  for (const CurvePoint& p : falling) {
    while (hull.size() >= 2 && is_above(hull[hull.size() - 2], hull.back(), p)) hull.pop_back();
    hull.push_back(p);
  }
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
    std::size_t to = from + 1;
    while (to + 1 < curve.size() && chord_error_j(curve, from, to + 1) <= tolerance_j) ++to;
    kept.push_back(curve[to]);
    from = to;
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
