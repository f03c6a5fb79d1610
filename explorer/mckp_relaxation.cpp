#include "explorer/mckp_relaxation.hpp"

#include <algorithm>

#include "explorer/pareto.hpp"

namespace rubato {

std::int64_t IntegerRow::spread() const noexcept {
  std::int64_t least = 0, most = 0;
  for (const IntegerItem& item : items) {
    least = std::min(least, item.weight);
    most = std::max(most, item.weight);
  }
  return most - least;
}

RowHulls::RowHulls(const std::vector<IntegerRow>& rows) {
  std::vector<double> weight, cost;
  for (const IntegerRow& row : rows) {
    weight.assign(1, 0.0);
    cost.assign(1, 0.0);
    for (const IntegerItem& item : row.items) {
      weight.push_back(static_cast<double>(item.weight));
      cost.push_back(static_cast<double>(item.cost));
    }
    const std::vector<std::size_t> hull = lower_hull(weight, cost);
    for (std::size_t h = 1; h < hull.size(); ++h) {
      const std::size_t from = hull[h - 1], to = hull[h];
      steps_.push_back({{weight[to] - weight[from], cost[to] - cost[from]}, starts_.size()});
    }
    starts_.push_back({weight[hull.front()], cost[hull.front()]});
  }
  std::ranges::sort(steps_, [](const Step& a, const Step& b) {
    const double left = a.change.cost * b.change.weight, right = b.change.cost * a.change.weight;
    return left != right ? left < right : a.row < b.row;
  });
}

void RowHulls::relax(std::size_t first, std::size_t last, Relaxation& curve) const {
  Vertex at;
  for (std::size_t row = first; row < last; ++row) {
    at.weight += starts_[row].weight;
    at.cost += starts_[row].cost;
  }
  curve.assign(1, at);
  for (const Step& step : steps_) {
    if (step.row < first || step.row >= last) continue;
    at.weight += step.change.weight;
    at.cost += step.change.cost;
    curve.push_back(at);
  }
}

const Relaxation& RunRelaxation::at_least(std::size_t first, std::size_t last) {
  const std::size_t rows = last - first;
  if (curve_.empty() || rows_ >= rows + stride_) {
    hulls_.relax(first, last, curve_);
    rows_ = rows;
  }
  return curve_;
}

}  // namespace rubato
