#pragma once
// Residuals of least squares that a few wild points cannot carry away.

#include <cmath>

namespace rubato {

/// A residual whose square is the pseudo-Huber loss of `r` (in standard deviations): r when small,
/// growing like sqrt(2 |r|) when large. Hartley, Zisserman, Multiple View Geometry, appendix 6.8.
[[nodiscard]] inline double robust(double r) {
  return std::copysign(std::sqrt(2.0 * (std::sqrt(1.0 + r * r) - 1.0)), r);
}

}  // namespace rubato
