#pragma once
// Pareto fronts and lower convex hulls of points with two costs x and y, both to be small.

#include <cstddef>
#include <span>
#include <vector>

namespace rubato {

/// Pareto front: positions of the points that no other point beats in both costs, by rising x. Of
/// equal points the lowest position is kept. O(n log n).
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const double> x,
                                                    std::span<const double> y);

struct HullPoint {
  double x = 0.0;
  double y = 0.0;
  std::size_t position = 0;
};

/// The vertices of the lower convex hull, as far as it falls to the right. In place, O(n).
/// @param points  by rising x, and by rising y where x is equal
/// @return the vertices, in order: the first part of `points`
[[nodiscard]] std::span<const HullPoint> keep_lower_hull(std::span<HullPoint> points);

/// The lower convex hull, by rising x: the points that minimise y + slope x for some slope >= 0.
/// Points on a line between two others are left out. Of equal points the lowest position is kept.
/// An object keeps its memory from call to call; one thread at a time.
class LowerHull {
 public:
  /// @param x, y  as many, finite
  /// @return valid until the next call; empty without points
  [[nodiscard]] std::span<const HullPoint> of(std::span<const double> x, std::span<const double> y);

 private:
  std::size_t keep_below(std::span<const double> x, std::span<const double> y,
                         const HullPoint& left, const HullPoint& right);
  void add_between(std::size_t first, std::size_t last, std::size_t free, const HullPoint& left,
                   const HullPoint& right, int depth);
  void find_candidates(std::span<const double> x, std::span<const double> y);

  std::vector<std::size_t> positions_;
  std::vector<HullPoint> points_, candidates_;
};

/// Positions of LowerHull's points.
[[nodiscard]] std::vector<std::size_t> lower_hull(std::span<const double> x,
                                                  std::span<const double> y);

}  // namespace rubato
