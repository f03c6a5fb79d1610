#pragma once
// What many numbers have in common.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
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

}  // namespace rubato
