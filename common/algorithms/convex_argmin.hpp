#pragma once
// Where a convex function is least, by golden sections.

namespace rubato {

/// @return a place off by 1e-12 of the interval
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
