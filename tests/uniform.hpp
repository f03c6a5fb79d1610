#pragma once
// Real numbers for properties; rapidcheck itself has single whole ones.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rapidcheck.h>

namespace rubato {

/// A number from `low` to `high`.
inline double uniform(double low, double high) {
  const auto share = static_cast<double>(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50));
  return low + (high - low) * share / static_cast<double>(std::int64_t{1} << 50);
}

/// `count` whole numbers from `low` up to but not `end`. Small ones collide often, and ties are
/// where searches go wrong.
inline std::vector<double> whole_numbers(std::size_t count, int low, int end) {
  const auto drawn = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(low, end));
  return {drawn.begin(), drawn.end()};
}

}  // namespace rubato
