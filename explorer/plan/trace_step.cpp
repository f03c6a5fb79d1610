#include "explorer/plan/trace_step.hpp"

#include <algorithm>
#include <span>

namespace rubato {

std::vector<AppliedStretch> applied_step(const Trace& trace, const Plan& plan,
                                         const ClockGrid& grid, const ProfileTable& per_launch) {
  std::vector<AppliedStretch> step;
  const auto add = [&](ClockId clock, double time_s, std::uint64_t count) {
    if (!step.empty() && step.back().clock == grid[clock])
      step.back().time_s += time_s;
    else
      step.push_back({.time_s = time_s, .clock = grid[clock], .count = count});
  };
  std::span<const ClockId> rest = plan.clock_of_site;
  for (const Segment& segment : plan.segments_of(trace)) {
    const std::span<const ClockId> clocks = rest.first(segment.launches.size());
    rest = rest.subspan(clocks.size());
    // A block of one clock is one stretch, however often it repeats.
    const bool one_clock =
        std::ranges::adjacent_find(clocks, std::ranges::not_equal_to{}) == clocks.end();
    // Of other blocks the second repeat stands for all but the first and the last.
    constexpr std::uint64_t listed = 3;
    const std::uint64_t repeats = one_clock ? 1 : std::min<std::uint64_t>(segment.repeat, listed);
    for (std::uint64_t repeat = 0; repeat < repeats; ++repeat) {
      const bool middle = repeat == 1 && repeats == listed;
      for (std::size_t i = 0; i < clocks.size(); ++i) {
        const double time_s = per_launch.cost(index(segment.launches[i]), clocks[i]).time_s;
        add(clocks[i], one_clock ? time_s * static_cast<double>(segment.repeat) : time_s,
            middle ? segment.repeat - 2 : 1);
      }
    }
  }
  return step;
}

}  // namespace rubato
