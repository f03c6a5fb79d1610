#pragma once
// Fronts of points with two costs, both to be small.

#include <cstddef>
#include <span>
#include <vector>

namespace rubato {

/// Positions of the points no other point beats in both costs, by rising x.
/// Of equal points the lowest position is kept. O(n log n).
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const double> x,
                                                    std::span<const double> y);

/// The points of the front that minimise y + slope x for some slope >= 0: the
/// lower convex hull, by rising x. Points on a line between two others are left out.
[[nodiscard]] std::vector<std::size_t> lower_hull(std::span<const double> x,
                                                  std::span<const double> y);

}  // namespace rubato
