#include "explorer/knapsack/relaxation.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "explorer/pareto.hpp"

namespace rubato {

RowHulls::RowHulls(const std::vector<IntegerRow>& rows) {
  std::vector<HullPoint> points;
  for (const IntegerRow& row : rows) {
    points.assign(1, {});
    for (const IntegerItem& item : row.items)
      points.push_back({static_cast<double>(item.weight), static_cast<double>(item.cost), 0});
    std::ranges::sort(points, {}, [](const HullPoint& p) { return std::pair(p.x, p.y); });
    const std::span<const HullPoint> hull = keep_lower_hull(points);
    for (std::size_t h = 1; h < hull.size(); ++h) {
      const double weight = hull[h].x - hull[h - 1].x, cost = hull[h].y - hull[h - 1].y;
      steps_.push_back({weight, cost, cost / weight, centres_.size()});
      centre_ += static_cast<std::size_t>(hull[h].x <= 0.0);
    }
    centres_.push_back({hull.front().x, hull.front().y, 0.0});
  }
  std::ranges::sort(steps_, [](const Step& a, const Step& b) {
    return a.slope != b.slope ? a.slope < b.slope : a.row < b.row;
  });
  for (const Step& step : std::span(steps_).first(centre_)) {
    centres_[step.row].weight += step.weight;
    centres_[step.row].cost += step.cost;
  }
}

RestCurve::RestCurve(const RowHulls& hulls, std::size_t stride)
    : hulls_(hulls), stride_(stride), curve_(hulls.steps_.size() + 1) {}

void RestCurve::shrink_to(std::size_t first, std::size_t last) {
  exact_ = last_ > first_ && last_ - first_ == last - first;
  if (last_ > first_ && last_ - first_ < last - first + stride_) return;
  exact_ = true;
  first_ = first;
  last_ = last;
  low_ = high_ = at_ = left_steps_ = right_step_ = hulls_.centre_;
  Vertex& centre = curve_[at_] = {};
  for (std::size_t row = first; row < last; ++row) {
    centre.weight += hulls_.centres_[row].weight;
    centre.cost += hulls_.centres_[row].cost;
  }
}

bool RestCurve::extend_left() {
  while (left_steps_ > 0) {
    const RowHulls::Step& step = hulls_.steps_[--left_steps_];
    if (!mine(step)) continue;
    const Vertex& from = curve_[low_];
    curve_[--low_] = {from.weight - step.weight, from.cost - step.cost, step.slope};
    return true;
  }
  return false;
}

bool RestCurve::extend_right() {
  while (right_step_ < hulls_.steps_.size()) {
    const RowHulls::Step& step = hulls_.steps_[right_step_++];
    if (!mine(step)) continue;
    Vertex& from = curve_[high_];
    from.slope = step.slope;
    curve_[++high_] = {from.weight + step.weight, from.cost + step.cost, 0.0};
    return true;
  }
  return false;
}

}  // namespace rubato
