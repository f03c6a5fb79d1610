#include "explorer/pareto.hpp"

#include <algorithm>
#include <array>
#include <cassert>
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

  // By rising x: a point is kept only if its y is below that of all before it.
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

// Rounding of a height over its terms, some four units in the last place: by so much a point on a
// chord may seem to lie above it.
constexpr double chord_rounding = 1e-15;

// The line through two points, the right one lower.
class Chord {
 public:
  Chord(const HullPoint& left, const HullPoint& right)
      : slope_((left.y - right.y) / (right.x - left.x)), level_(left.y + slope_ * left.x) {}

  [[nodiscard]] double height(double x, double y) const { return y + slope_ * x; }
  [[nodiscard]] bool not_above(const HullPoint& p) const {
    return height(p.x, p.y) <= level_ + rounding(p);
  }
  /// The greatest height that a point between the two may have without lying above the chord.
  [[nodiscard]] double highest_level(const HullPoint& left, const HullPoint& right) const {
    return level_ + std::max(rounding(left), rounding(right)) +
           std::max(rounding({left.x, right.y, 0}), rounding({right.x, left.y, 0}));
  }

 private:
  [[nodiscard]] double rounding(const HullPoint& p) const {
    return chord_rounding * (std::abs(p.y) + slope_ * std::abs(p.x));
  }

  double slope_;
  double level_;
};

// Four at a time: no comparison waits for the one before.
double least_of(std::span<const double> values) {
  constexpr std::size_t lanes = 4;
  std::array<double, lanes> least;
  least.fill(values[0]);
  const std::size_t whole = values.size() - values.size() % lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane)
      least[lane] = values[i + lane] < least[lane] ? values[i + lane] : least[lane];
  }
  double result = *std::ranges::min_element(least);
  for (std::size_t i = whole; i < values.size(); ++i) result = std::min(result, values[i]);
  return result;
}

// The leftmost and the lowest point. Of several leftmost ones the lowest, of several lowest ones
// the leftmost, then the first.
std::pair<HullPoint, HullPoint> ends_of(std::span<const double> x, std::span<const double> y) {
  const double least_x = least_of(x), least_y = least_of(y);
  const double unseen = std::numeric_limits<double>::infinity();
  HullPoint left{least_x, unseen, 0}, right{unseen, least_y, 0};
  for (std::size_t i = 0; i < x.size(); ++i) {
    // Nothing is less: <= is ==, and cheaper where NaN need not be thought of.
    if (x[i] <= least_x && y[i] < left.y) left = {x[i], y[i], i};
    if (y[i] <= least_y && x[i] < right.x) right = {x[i], y[i], i};
  }
  return {left, right};
}

}  // namespace

// Conditions below are combined without branches. These would be taken at random, and mispredicted
// ones would take most of the time. A point that is not kept is overwritten by the next.

// Puts those points between `left` and `right` that may be vertices into points_.
std::size_t LowerHull::keep_below(std::span<const double> x, std::span<const double> y,
                                  const HullPoint& left, const HullPoint& right) {
  points_.resize(2 * x.size() + 2);
  positions_.resize(x.size() + 1);
  const Chord chord(left, right);
  const double level = chord.highest_level(left, right);
  std::size_t below = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    positions_[below] = i;
    below += static_cast<std::size_t>(chord.height(x[i], y[i]) <= level);
  }
  std::size_t count = 0;
  for (const std::size_t i : std::span(positions_).first(below)) {
    points_[count] = {x[i], y[i], i};
    count += static_cast<std::size_t>(static_cast<int>(x[i] > left.x) &
                                      static_cast<int>(x[i] < right.x) &
                                      static_cast<int>(y[i] < left.y));
  }
  return count;
}

// Appends the points among points_[first, last) that may be vertices to candidates_, by rising x.
// As in quickhull, the point farthest below the chord is a vertex; it divides the others, and those
// above the two new chords are dropped. The right part waits from `free` on until the left part is
// done, then takes its place. Parts that wait and the part in work are disjoint, so that from
// `free` on there is room for last - first more.
void LowerHull::add_between(std::size_t first, std::size_t last, std::size_t free,
                            const HullPoint& left, const HullPoint& right, int depth) {
  if (first == last) return;
  assert(free + (last - first) < points_.size());
  constexpr std::size_t few = 3;
  const auto begin = points_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = points_.begin() + static_cast<std::ptrdiff_t>(last);
  if (last - first <= few || depth == 0) {
    std::sort(begin, end, [](const HullPoint& a, const HullPoint& b) {
      return std::tuple(a.x, a.y, a.position) < std::tuple(b.x, b.y, b.position);
    });
    candidates_.insert(candidates_.end(), begin, end);
    return;
  }
  const Chord chord(left, right);
  HullPoint middle = *begin;
  double least = chord.height(middle.x, middle.y);
  for (auto p = begin + 1; p != end; ++p) {
    const double height = chord.height(p->x, p->y);
    if (height > least) continue;
    if (height < least || std::tuple(p->y, p->position) < std::tuple(middle.y, middle.position)) {
      least = height;
      middle = *p;
    }
  }
  // A chord must fall to the right; else nothing on its side can be a vertex.
  const bool has_left = left.x < middle.x && left.y > middle.y;
  const bool has_right = middle.x < right.x && middle.y > right.y;
  const Chord to_left(left, middle), to_right(middle, right);
  std::size_t left_end = first, right_end = free;
  for (std::size_t i = first; i < last; ++i) {
    const HullPoint p = points_[i];
    const int before = static_cast<int>(p.x < middle.x) & static_cast<int>(to_left.not_above(p));
    const int after = static_cast<int>(p.x > middle.x) & static_cast<int>(to_right.not_above(p));
    points_[left_end] = p;
    points_[right_end] = p;
    left_end += static_cast<std::size_t>(before & static_cast<int>(has_left));
    right_end += static_cast<std::size_t>(after & static_cast<int>(has_right));
  }
  add_between(first, left_end, right_end, left, middle, depth - 1);
  candidates_.push_back(middle);
  std::copy(points_.begin() + static_cast<std::ptrdiff_t>(free),
            points_.begin() + static_cast<std::ptrdiff_t>(right_end),
            points_.begin() + static_cast<std::ptrdiff_t>(first));
  add_between(first, first + right_end - free, free, middle, right, depth - 1);
}

// The points that may be vertices, by rising x: the leftmost, the lowest, and some in the triangle
// between them. Most points of a real row lie above a few chords. These need not be sorted.
void LowerHull::find_candidates(std::span<const double> x, std::span<const double> y) {
  const auto [left, right] = ends_of(x, y);
  candidates_.assign(1, left);
  if (left.position == right.position) return;
  constexpr int depth = 12;
  const std::size_t count = keep_below(x, y, left, right);
  add_between(0, count, count, left, right, depth);
  candidates_.push_back(right);
}

std::span<const HullPoint> keep_lower_hull(std::span<HullPoint> points) {
  // In place: what is kept never overtakes what is read.
  std::size_t kept = 0;
  for (const HullPoint& p : points) {
    // A point before it is no worse in both.
    if (kept > 0 && p.y >= points[kept - 1].y) continue;
    // The middle of three points goes unless the slope gets flatter there.
    while (kept >= 2) {
      const HullPoint &a = points[kept - 2], &b = points[kept - 1];
      const bool convex = (b.y - a.y) * (p.x - b.x) < (p.y - b.y) * (b.x - a.x);
      if (convex) break;
      --kept;
    }
    points[kept++] = p;
  }
  return points.first(kept);
}

std::span<const HullPoint> LowerHull::of(std::span<const double> x, std::span<const double> y) {
  candidates_.clear();
  if (!x.empty()) find_candidates(x, y);
  return keep_lower_hull(candidates_);
}

std::vector<std::size_t> lower_hull(std::span<const double> x, std::span<const double> y) {
  std::vector<std::size_t> positions;
  LowerHull hull;
  for (const HullPoint& p : hull.of(x, y)) positions.push_back(p.position);
  return positions;
}

}  // namespace rubato
