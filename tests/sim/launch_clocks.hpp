#pragma once
// Plans of traces launch by launch.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/plan.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Repeats expanded: those of a site have the same clock.
inline std::vector<ClockId> clocks_of_launches(const Trace& trace, const Plan& plan) {
  std::vector<ClockId> clocks;
  std::size_t first = 0;
  for (const Segment& segment : trace.segments) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      for (std::size_t i = 0; i < segment.launches.size(); ++i)
        clocks.push_back(plan.clock_of_site[first + i]);
    }
    first += segment.launches.size();
  }
  return clocks;
}

}  // namespace rubato
