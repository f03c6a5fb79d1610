#include "explorer/confidence/seen_times.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

namespace {

using Next = std::span<const SeenTime>::iterator;

// The first that was seen at a clock at most as high.
Next first_at_most(std::span<const SeenTime> seen, double core_mhz) {
  return std::ranges::find_if(seen, [&](const SeenTime& s) { return s.core_mhz <= core_mhz; });
}

// On the line through two times over 1 / clock.
double on_chord(const SeenTime& a, const SeenTime& b, double core_mhz) {
  const double share = (1.0 / core_mhz - 1.0 / a.core_mhz) / (1.0 / b.core_mhz - 1.0 / a.core_mhz);
  return a.time_s + share * (b.time_s - a.time_s);
}

double in_proportion(const SeenTime& a, double core_mhz) {
  return a.time_s * a.core_mhz / core_mhz;
}

}  // namespace

std::pair<double, double> possible_times(std::span<const SeenTime> seen, double core_mhz) {
  const auto next = first_at_most(seen, core_mhz);
  const auto ordered = [](double a, double b) { return std::minmax({a, b}); };
  if (next == seen.begin()) return ordered(in_proportion(*next, core_mhz), next->time_s);
  const SeenTime& above = *std::prev(next);
  if (next == seen.end())
    return ordered(std::max(on_chord(*std::prev(next, 2), above, core_mhz), above.time_s),
                   in_proportion(above, core_mhz));
  return ordered(std::max(above.time_s, in_proportion(*next, core_mhz)),
                 on_chord(above, *next, core_mhz));
}

double drawn_time(std::span<const SeenTime> seen, double core_mhz, double quantile) {
  const auto [least_s, most_s] = possible_times(seen, core_mhz);
  const auto next = first_at_most(seen, core_mhz);
  const bool between = next != seen.begin() && next != seen.end();
  // Kumaraswamy's distribution, with exponents that measured kernels have.
  const double a = between ? 1.5 : 0.7, b = between ? 0.8 : 0.9;
  const double position = std::pow(1.0 - std::pow(1.0 - quantile, 1.0 / b), 1.0 / a);
  return least_s + position * (most_s - least_s);
}

double distance_to(std::span<const SeenTime> seen, double core_mhz) {
  const auto from = [&](const SeenTime& s) { return std::abs(std::log(core_mhz / s.core_mhz)); };
  const auto next = first_at_most(seen, core_mhz);
  if (next == seen.begin()) return from(*next);
  const double above = from(*std::prev(next));
  if (next == seen.end()) return above;
  const double below = from(*next);
  return above * below / (above + below);
}

}  // namespace rubato
