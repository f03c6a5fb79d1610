#pragma once
// Times that vary from launch to launch, the same on every machine.

#include <cstdint>

namespace rubato {

/// A factor on a time. Log-normal with mean 1, so that jitter lengthens nothing on average; 1 for
/// sigma 0.
/// @param sigma  standard deviation of the logarithm, >= 0
/// @param draw   which of the seed's factors: the same number, the same factor
[[nodiscard]] double jitter_factor(double sigma, std::uint64_t seed, std::uint64_t draw);

}  // namespace rubato
