#include "sim/jitter.hpp"

#include <cmath>
#include <numbers>

namespace rubato {

namespace {

// One step of splitmix64. Source: Steele, Lea, Flood, OOPSLA 2014.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// In (0, 1).
double uniform(std::uint64_t seed, std::uint64_t draw) {
  const double steps = 9007199254740992.0;  // 2^53
  return (static_cast<double>(mix(mix(seed) ^ draw) >> 11) + 0.5) / steps;
}

}  // namespace

double jitter_factor(double sigma, std::uint64_t seed, std::uint64_t draw) {
  if (sigma == 0.0) return 1.0;
  const double radius = std::sqrt(-2.0 * std::log(uniform(seed, 2 * draw)));
  const double angle = 2.0 * std::numbers::pi * uniform(seed, 2 * draw + 1);
  return std::exp(sigma * radius * std::cos(angle) - 0.5 * sigma * sigma);
}

}  // namespace rubato
