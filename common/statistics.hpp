#pragma once
// Statistics of a sample: its median, and between which of its values the true median lies.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace rubato {

/// The middle value. Of an even number of values: the midpoint of the two middle ones, of whole
/// numbers rounded towards the smaller.
/// @param values  numbers, at least one
template <class T>
[[nodiscard]] T median(std::vector<T> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

/// A confidence interval of the median without an assumption about the distribution, as ranks of
/// order statistics. Example: of n = 8 values k is 1, so the interval is from the second smallest
/// to the second largest. The median of the distribution lies between the (k+1)-th smallest and the
/// (k+1)-th largest of n values with a probability of at least 90 %.
/// @param n  number of values, 1 to 1,000
/// @return the greatest k with P(Binomial(n, 1/2) <= k) <= 5 %; nothing with n < 5, where even the
///         least and the greatest value enclose the median less often
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
