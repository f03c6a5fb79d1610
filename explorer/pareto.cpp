#include "explorer/pareto.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

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

namespace {

struct Point {
  double x = 0.0;
  double y = 0.0;
  std::size_t position = 0;
};

// Ulps by which a point may seem to lie above a chord it is on.
constexpr double chord_rounding = 1e-15;

// The line through two points, the right one lower.
class Chord {
 public:
  Chord(const Point& left, const Point& right)
      : slope_((left.y - right.y) / (right.x - left.x)), level_(left.y + slope_ * left.x) {}

  [[nodiscard]] double height(double x, double y) const { return y + slope_ * x; }
  [[nodiscard]] bool not_above(double x, double y) const {
    return height(x, y) <= level_ + chord_rounding * (std::abs(y) + slope_ * std::abs(x));
  }

 private:
  double slope_;
  double level_;
};

// Appends what may be a vertex between `left` and `right`, by rising x: halves the
// points at the one farthest below the chord, and drops those above the new chords.
void add_between(std::vector<Point> points, const Point& left, const Point& right, int depth,
                 std::vector<Point>& vertices) {
  constexpr std::size_t few = 8;
  if (points.size() <= few || depth == 0) {
    std::ranges::sort(points, {}, [](const Point& p) { return std::tuple(p.x, p.y, p.position); });
    vertices.insert(vertices.end(), points.begin(), points.end());
    return;
  }
  const Chord chord(left, right);
  const Point middle = *std::ranges::min_element(points, {}, [&](const Point& p) {
    return std::tuple(chord.height(p.x, p.y), p.y, p.position);
  });
  const auto below = [&](const Point& a, const Point& b) {
    std::vector<Point> kept;
    if (!(a.x < b.x && a.y > b.y)) return kept;
    const Chord side(a, b);
    for (const Point& p : points) {
      if (p.x > a.x && p.x < b.x && side.not_above(p.x, p.y)) kept.push_back(p);
    }
    return kept;
  };
  add_between(below(left, middle), left, middle, depth - 1, vertices);
  vertices.push_back(middle);
  add_between(below(middle, right), middle, right, depth - 1, vertices);
}

// The points in the triangle between the leftmost and the lowest point that may be
// vertices, by rising x. Most points of a real row lie above a few chords, and
// dropping those first saves the sort.
std::vector<Point> hull_candidates(std::span<const double> x, std::span<const double> y) {
  const auto point = [&](std::size_t i) { return Point{x[i], y[i], i}; };
  Point left = point(0), right = left;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[i] < left.x || (x[i] == left.x && y[i] < left.y)) left = point(i);
    if (y[i] < right.y || (y[i] == right.y && x[i] < right.x)) right = point(i);
  }
  if (left.position == right.position) return {left};
  const Chord chord(left, right);
  std::vector<Point> below;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] > left.x && x[i] < right.x && y[i] < left.y && chord.not_above(x[i], y[i]))
      below.push_back(point(i));
  }
  constexpr int depth = 12;
  std::vector<Point> candidates{left};
  add_between(std::move(below), left, right, depth, candidates);
  candidates.push_back(right);
  return candidates;
}

}  // namespace

std::vector<std::size_t> lower_hull(std::span<const double> x, std::span<const double> y) {
  if (x.empty()) return {};
  std::vector<Point> hull;
  for (const Point& p : hull_candidates(x, y)) {
    // Dominated by a point before it.
    if (!hull.empty() && p.y >= hull.back().y) continue;
    // The middle of three points goes unless the slope gets flatter there.
    while (hull.size() >= 2) {
      const Point &a = hull[hull.size() - 2], &b = hull.back();
      const bool convex = (b.y - a.y) * (p.x - b.x) < (p.y - b.y) * (b.x - a.x);
      if (convex) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
  std::vector<std::size_t> positions;
  for (const Point& p : hull) positions.push_back(p.position);
  return positions;
}

}  // namespace rubato
