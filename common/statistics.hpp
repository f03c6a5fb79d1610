#pragma once
// What many numbers have in common.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace rubato {

/// The middle value; of an even number the midpoint of the two middle ones (of whole numbers
/// rounded towards the smaller).
/// @param values  numbers, at least one
template <class T>
[[nodiscard]] T median(std::vector<T> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

/// Ranks of order statistics that hold the median of what they were drawn from with a chance of
/// at least 90 %: between the (k+1)-th smallest and the (k+1)-th largest of n, for the greatest k
/// with P(Binomial(n, 1/2) <= k) <= 5 %. Nothing with n < 5, whose least and greatest hold it less
/// often.
/// @param n  1 to 1,000
[[nodiscard]] inline std::optional<std::size_t> median_rank(std::size_t n) {
  constexpr double tail = 0.05;
  double probability = std::pow(0.5, static_cast<double>(n));  // of exactly k below the median
  double at_most = probability;
  if (at_most > tail) return std::nullopt;
  std::size_t k = 0;
  while (true) {
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    at_most += probability;
    if (at_most > tail) return k;
    ++k;
  }
}

}  // namespace rubato
