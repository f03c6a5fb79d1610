#include "explorer/pareto.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace rubato {

std::vector<std::size_t> pareto_front(std::span<const double> x, std::span<const double> y) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(x[i], y[i], i); });

  // By rising x a point survives only if its y is below all before it.
  std::vector<std::size_t> front;
  double least_y = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (y[i] < least_y) {
      least_y = y[i];
      front.push_back(i);
    }
  }
  return front;
}

std::vector<std::size_t> lower_hull(std::span<const double> x, std::span<const double> y) {
  std::vector<std::size_t> hull;
  for (const std::size_t i : pareto_front(x, y)) {
    // The middle of three points goes unless the slope gets flatter there.
    while (hull.size() >= 2) {
      const std::size_t a = hull[hull.size() - 2], b = hull.back();
      const bool convex = (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]);
      if (convex) break;
      hull.pop_back();
    }
    hull.push_back(i);
  }
  return hull;
}

}  // namespace rubato
