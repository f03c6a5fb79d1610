#include "models/calibration/implausible.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double least_power_share = 0.85;

// Whether power falls sharply from a lower clock without the work taking longer.
// @param before  points of the same memory state and cap, at no higher clocks
bool is_implausible(const SweepPoint& point, std::span<const SweepPoint* const> before) {
  return std::ranges::any_of(before, [&](const SweepPoint* lower) {
    return *lower->clock.core_mhz < *point.clock.core_mhz &&
           *point.power_w < least_power_share * *lower->power_w && *point.time_s <= *lower->time_s;
  });
}

std::set<const SweepPoint*> implausible_points(const SweepKernel& kernel) {
  std::vector<const SweepPoint*> by_clock;
  for (const SweepPoint& point : kernel.points) {
    if (point.power_w && point.time_s && point.clock.core_mhz) by_clock.push_back(&point);
  }
  const auto setting = [](const SweepPoint* point) {
    return std::pair(point->clock.mem.value, point->power_cap_w);
  };
  const auto key = [&](const SweepPoint* point) {
    return std::pair(setting(point), *point->clock.core_mhz);
  };
  if (!std::ranges::is_sorted(by_clock, {}, key)) std::ranges::stable_sort(by_clock, {}, key);
  std::set<const SweepPoint*> wrong;
  std::size_t first = 0;
  double most_power_w = 0.0;
  for (std::size_t i = 0; i < by_clock.size(); ++i) {
    if (setting(by_clock[i]) != setting(by_clock[first])) {
      first = i;
      most_power_w = 0.0;
    }
    const SweepPoint& point = *by_clock[i];
    // Only then can one be found, which is rare.
    if (*point.power_w < least_power_share * most_power_w &&
        is_implausible(point, std::span(by_clock).subspan(first, i - first)))
      wrong.insert(&point);
    most_power_w = std::max(most_power_w, *point.power_w);
  }
  return wrong;
}

}  // namespace

void leave_out_implausible(Sweep& sweep) {
  for (SweepKernel& kernel : sweep.kernels) {
    const std::set<const SweepPoint*> wrong = implausible_points(kernel);
    if (wrong.empty()) continue;
    std::vector<SweepPoint> kept;
    for (const SweepPoint& point : kernel.points) {
      if (!wrong.contains(&point)) {
        kept.push_back(point);
        continue;
      }
      sweep.left_out.push_back(fmt::format(
          "{}, core {} MHz: {:.0f} W is far less than at lower clocks, without being slower",
          kernel.name, format_number(point.clock.core_mhz.value_or(0.0)), *point.power_w));
    }
    kernel.points = std::move(kept);
  }
}

}  // namespace rubato
