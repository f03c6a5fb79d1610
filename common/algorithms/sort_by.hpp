#pragma once
// Stable sorting by a number: keys are sorted in one place, elements are moved once.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace rubato {

/// Positions of `keys` from the least key up; equal keys in their order. No key may be NaN.
[[nodiscard]] std::vector<std::size_t> ascending(std::span<const std::int64_t> keys);
[[nodiscard]] std::vector<std::size_t> ascending(std::span<const double> keys);

/// What `key` gives for an element, as the number it is sorted by: an integer or enumeration of at
/// most 63 bits, or a floating-point number.
template <class T, class Key>
[[nodiscard]] auto sort_key(const T& element, const Key& key) {
  const auto number = std::invoke(key, element);
  if constexpr (std::floating_point<std::remove_const_t<decltype(number)>>)
    return static_cast<double>(number);
  else
    return static_cast<std::int64_t>(number);
}

/// Sorts `list` by the number that `key` gives, least first; equal ones keep their order.
template <class T, class Key>
void sort_by(std::vector<T>& list, const Key& key) {
  std::vector<decltype(sort_key(list[0], key))> keys;
  keys.reserve(list.size());
  for (const T& element : list) keys.push_back(sort_key(element, key));
  std::vector<T> sorted;
  sorted.reserve(list.size());
  for (const std::size_t i : ascending(keys)) sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

/// The same, greatest first.
template <class T, class Key>
void sort_down_by(std::vector<T>& list, const Key& key) {
  sort_by(list, [&](const T& element) { return -sort_key(element, key); });
}

}  // namespace rubato
