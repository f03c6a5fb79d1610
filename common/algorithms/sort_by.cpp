#include "common/algorithms/sort_by.hpp"

#include <algorithm>

namespace rubato {

namespace {

template <class Number>
std::vector<std::size_t> sorted_positions(std::span<const Number> keys) {
  std::vector<std::pair<Number, std::size_t>> order;
  order.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) order.emplace_back(keys[i], i);
  if (!std::ranges::is_sorted(keys)) std::ranges::sort(order);
  std::vector<std::size_t> positions;
  positions.reserve(keys.size());
  for (const auto& [key, position] : order) positions.push_back(position);
  return positions;
}

}  // namespace

std::vector<std::size_t> ascending(std::span<const std::int64_t> keys) {
  return sorted_positions(keys);
}

std::vector<std::size_t> ascending(std::span<const double> keys) { return sorted_positions(keys); }

}  // namespace rubato
