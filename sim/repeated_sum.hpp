#pragma once
// Sums of terms that come many times.

#include <cmath>
#include <cstdint>

#include "common/numbers.hpp"

namespace rubato {

/// Adds a term `count` times at once: the product and what its rounding lost.
inline void add_times(CompensatedSum& sum, double term, std::uint64_t count) noexcept {
  const auto times = static_cast<double>(count);
  const double product = term * times;
  sum.add(product);
  sum.add(std::fma(term, times, -product));
}

}  // namespace rubato
