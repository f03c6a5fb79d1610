#include "sim/simulator.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

// Totals under construction: long sums are compensated.
struct Tally {
  CompensatedSum time_s;
  CompensatedSum energy_j;
  std::uint64_t launches = 0;
  std::uint64_t power_limited = 0;

  void add(const OperatingPoint& point) {
    time_s.add(point.time_s);
    energy_j.add(point.energy_j);
    ++launches;
    if (point.power_limited) ++power_limited;
  }
  [[nodiscard]] Totals totals() const {
    return {.time_s = time_s.value(),
            .energy_j = energy_j.value(),
            .launches = launches,
            .clock_switches = 0,
            .power_limited_launches = power_limited};
  }
};

std::vector<Totals> totals_of(const std::vector<Tally>& tallies) {
  std::vector<Totals> list;
  for (const Tally& tally : tallies) list.push_back(tally.totals());
  return list;
}

void check_plan(const std::vector<Site>& launches, const ClockGrid& grid, const Plan& plan) {
  if (plan.clock_of_site.size() != launches.size()) {
    throw DataError(
        fmt::format("the plan has {} entries; expected {}, one per launch of the compact trace",
                    plan.clock_of_site.size(), launches.size()));
  }
  for (const ClockId clock : plan.clock_of_site) {
    if (index(clock) < grid.size()) continue;
    throw DataError(
        fmt::format("the plan asks for clock {}; the grid has {}", index(clock), grid.size()));
  }
}

}  // namespace

std::vector<TimedLaunch> replay(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                                const Plan& plan) {
  const std::vector<Site> launches = sites(trace);
  check_plan(launches, grid, plan);
  // A site always runs the same way, however often it is repeated.
  std::vector<OperatingPoint> points;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    points.push_back(model.evaluate(launches[i].kernel, grid[plan.clock_of_site[i]]));
  }
  std::vector<TimedLaunch> timeline;
  std::size_t first = 0;
  for (const Segment& segment : trace.segments) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      for (std::size_t i = first; i < first + segment.launches.size(); ++i) {
        timeline.push_back(
            {id_at<SiteId>(i), launches[i].kernel, plan.clock_of_site[i], points[i]});
      }
    }
    first += segment.launches.size();
  }
  return timeline;
}

SimResult simulate(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                   const Plan& plan, const SwitchCost& switch_cost) {
  const std::vector<TimedLaunch> timeline = replay(trace, model, grid, plan);
  Tally total, switching;
  std::vector<Tally> by_pass(all_names<Pass>().size()), by_kernel(trace.kernels.size());
  std::uint64_t switches = 0;
  ClockId clock = timeline.back().clock;
  for (const TimedLaunch& launch : timeline) {
    if (launch.clock != clock) {
      ++switches;
      const double idle_j = switch_cost.stall_s * model.idle_power_w(grid[launch.clock]);
      switching.time_s.add(switch_cost.stall_s);
      switching.energy_j.add(idle_j + switch_cost.energy_j);
      clock = launch.clock;
    }
    total.add(launch.point);
    by_pass[static_cast<std::size_t>(trace.kernels[index(launch.kernel)].pass)].add(launch.point);
    by_kernel[index(launch.kernel)].add(launch.point);
  }
  SimResult result{total.totals(), switching.totals(), totals_of(by_pass), totals_of(by_kernel)};
  result.switching.clock_switches = switches;
  result.total.clock_switches = switches;
  result.total.time_s += result.switching.time_s;
  result.total.energy_j += result.switching.energy_j;
  return result;
}

}  // namespace rubato
