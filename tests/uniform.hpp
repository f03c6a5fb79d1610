#pragma once
// Real numbers for properties; rapidcheck itself has whole ones only.

#include <cstdint>

#include <rapidcheck.h>

namespace rubato {

/// A number from `low` to `high`.
inline double uniform(double low, double high) {
  const auto share = static_cast<double>(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50));
  return low + (high - low) * share / static_cast<double>(std::int64_t{1} << 50);
}

}  // namespace rubato
