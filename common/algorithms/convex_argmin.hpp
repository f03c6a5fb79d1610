#pragma once
// Where a convex function is least, by golden-section search.

namespace rubato {

/// @param low, high  the interval that is searched, low <= high
/// @param f          convex; called 62 times
/// @return where f is least, off by at most 1e-12 of the interval; further off only where f is so
///         flat that its rounding hides the differences
template <class Function>
[[nodiscard]] double convex_argmin(double low, double high, Function f) {
  constexpr double ratio = 0.6180339887498949;
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double fa = f(a), fb = f(b);
  for (int i = 0; i < 60; ++i) {
    if (fa <= fb) {
      high = b;
      b = a;
      fb = fa;
      a = high - ratio * (high - low);
      fa = f(a);
    } else {
      low = a;
      a = b;
      fa = fb;
      b = low + ratio * (high - low);
      fb = f(b);
    }
  }
  return fa <= fb ? a : b;
}

}  // namespace rubato
