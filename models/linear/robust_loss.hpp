#pragma once
// A robust loss: residuals of least squares that a few outliers cannot carry away.

#include <cmath>

namespace rubato {

/// A residual whose square is the pseudo-Huber loss of `r`. It is near r where |r| is small, and
/// grows like sqrt(2 |r|) where |r| is large.
/// @param r  error in standard deviations
/// Source: Hartley, Zisserman, Multiple View Geometry, appendix 6.8.
[[nodiscard]] inline double robust(double r) {
  return std::copysign(std::sqrt(2.0 * (std::sqrt(1.0 + r * r) - 1.0)), r);
}

}  // namespace rubato
