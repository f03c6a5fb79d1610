#include "sim/simulator.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

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

bool same_launches(std::span<const Segment> a, std::span<const Segment> b) {
  return launches(a) == launches(b);
}

void check_plan(const Trace& trace, const ClockGrid& grid, const Plan& plan) {
  const std::size_t expected = sites(trace, plan).size();
  if (plan.clock_of_site.size() != expected) {
    throw DataError(
        fmt::format("the plan has {} entries; expected {}, one per launch of the compact trace",
                    plan.clock_of_site.size(), expected));
  }
  for (const ClockId clock : plan.clock_of_site) {
    if (index(clock) < grid.size()) continue;
    throw DataError(
        fmt::format("the plan asks for clock {}; the grid has {}", index(clock), grid.size()));
  }
  if (!plan.segments.empty() && !same_launches(plan.segments, trace.segments))
    throw DataError("the launches of the plan are not those of the trace");
}

// Runs the launches of a plan, iteration after iteration, on one device.
class Device {
 public:
  Device(const Trace& trace, const GpuModel& model, const ClockGrid& grid, const Plan& plan,
         const SwitchModel& switching, std::span<const OperatingPoint> cells)
      : model_(model),
        grid_(grid),
        cells_(cells),
        plan_(plan),
        segments_(plan.segments_of(trace)),
        sites_(sites(trace, plan)),
        switching_(switching),
        in_force_(plan.clock_of_site.back()) {
    // A kernel always runs the same way at a clock, at however many sites.
    std::unordered_map<std::size_t, OperatingPoint> known;
    planned_.reserve(sites_.size());
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const KernelId kernel = sites_[i].kernel;
      const ClockId clock = plan.clock_of_site[i];
      launches_ += sites_[i].repeat;
      if (!cells_.empty()) {
        planned_.push_back(cell(kernel, clock));
        continue;
      }
      const auto [at, is_new] = known.try_emplace(index(kernel) * grid.size() + index(clock));
      if (is_new) at->second = cell(kernel, clock);
      planned_.push_back(at->second);
    }
  }

  /// One more iteration; times count from its begin.
  ReplayedIteration run() {
    ReplayedIteration replay;
    replay.launches.reserve(launches_);
    std::size_t first = 0;
    for (const Segment& segment : segments_) {
      for (std::uint32_t r = 0; r < segment.repeat; ++r) {
        for (std::size_t i = first; i < first + segment.launches.size(); ++i) launch(i, replay);
      }
      first += segment.launches.size();
    }
    free_s_ -= now_s_;  // seen from the begin of the next iteration
    now_s_ = 0.0;
    return replay;
  }

 private:
  [[nodiscard]] OperatingPoint cell(KernelId kernel, ClockId clock) const {
    return cells_.empty() ? model_.evaluate(kernel, grid_[clock])
                          : cells_[index(kernel) * grid_.size() + index(clock)];
  }

  // A change waits for its request: not before the device is free for one. Zero leads and dwells
  // never wait, whatever was before.
  [[nodiscard]] double earliest_stall_s(const SwitchCost& cost) const {
    return free_s_ + cost.lead_s;
  }

  void launch(std::size_t site, ReplayedIteration& replay) {
    const ClockId wanted = plan_.clock_of_site[site];
    const KernelId kernel = sites_[site].kernel;
    TimedLaunch timed{.site = id_at<SiteId>(site),
                      .kernel = kernel,
                      .clock = in_force_,
                      .start_s = now_s_,
                      .point = {},
                      .late = false};
    double left = 1.0;  // of the launch's work
    while (left > 0.0) {
      double part = left;
      if (in_force_ != wanted) {
        const SwitchCost cost = switching_.change(grid_[in_force_], grid_[wanted]);
        const double wait_s = earliest_stall_s(cost) - now_s_;
        // Sums of times differ by rounding between a planner and this loop.
        constexpr double rounding = 1e-9;
        if (wait_s <= rounding * (cost.lead_s + switching_.dwell_s)) {
          change(wanted, cost, replay);
          if (left == 1.0) {
            timed.clock = wanted;
            timed.start_s = now_s_;
          }
          continue;
        }
        timed.late = true;
        part = std::min(left, wait_s / cell(kernel, in_force_).time_s);
      }
      const OperatingPoint point = in_force_ == wanted ? planned_[site] : cell(kernel, in_force_);
      add(timed.point, point, part);
      now_s_ += part * point.time_s;
      left = part == left ? 0.0 : left - part;
    }
    replay.launches.push_back(timed);
  }

  static void add(OperatingPoint& whole, const OperatingPoint& point, double part) {
    if (whole.time_s == 0.0) whole.core_mhz = point.core_mhz;
    whole.time_s += part * point.time_s;
    whole.energy_j += part * point.energy_j;
    whole.power_limited = whole.power_limited || point.power_limited;
  }

  void change(ClockId to, const SwitchCost& cost, ReplayedIteration& replay) {
    replay.switches.push_back(
        {.request_s = now_s_ - cost.lead_s,
         .stall_from_s = now_s_,
         .effect_s = now_s_ + cost.stall_s,
         .to = to,
         .energy_j = cost.energy_j + cost.stall_s * model_.idle_power_w(grid_[to])});
    now_s_ += cost.stall_s;
    in_force_ = to;
    free_s_ = now_s_ + switching_.dwell_s;
  }

  const GpuModel& model_;
  const ClockGrid& grid_;
  std::span<const OperatingPoint> cells_;  ///< shape [kernels x clocks], or none
  const Plan& plan_;
  const std::vector<Segment>& segments_;
  std::vector<Site> sites_;
  const SwitchModel& switching_;
  std::vector<OperatingPoint> planned_;  ///< shape [sites]
  std::size_t launches_ = 0;             ///< of an iteration
  ClockId in_force_;
  double now_s_ = 0.0;
  double free_s_ = -std::numeric_limits<double>::infinity();  ///< a request may be issued from here
};

}  // namespace

void add_power(Totals& totals, double power_w) noexcept {
  totals.energy_j += power_w * totals.time_s;
}

void add_power(SimResult& result, double power_w) noexcept {
  add_power(result.total, power_w);
  add_power(result.switching, power_w);
  for (Totals& pass : result.by_pass) add_power(pass, power_w);
  for (Totals& kernel : result.by_kernel) add_power(kernel, power_w);
}

ReplayedIteration replay(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                         const Plan& plan, const SwitchModel& switching,
                         std::span<const OperatingPoint> cells) {
  check_plan(trace, grid, plan);
  validate(switching);
  Device device(trace, model, grid, plan, switching, cells);
  // What one iteration leaves behind, a change under way or a dwell, meets the next.
  if (switching.may_delay()) (void)device.run();
  return device.run();
}

SimResult simulate(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                   const Plan& plan, const SwitchModel& switching,
                   std::span<const OperatingPoint> cells) {
  const ReplayedIteration replayed = replay(trace, model, grid, plan, switching, cells);
  Tally total, stalls;
  std::vector<Tally> by_pass(all_names<Pass>().size()), by_kernel(trace.kernels.size());
  std::uint64_t late = 0;
  for (const TimedLaunch& launch : replayed.launches) {
    total.add(launch.point);
    by_pass[static_cast<std::size_t>(trace.kernels[index(launch.kernel)].pass)].add(launch.point);
    by_kernel[index(launch.kernel)].add(launch.point);
    if (launch.late) ++late;
  }
  for (const TimedSwitch& change : replayed.switches) {
    stalls.time_s.add(change.effect_s - change.stall_from_s);
    stalls.energy_j.add(change.energy_j);
  }
  SimResult result{.total = total.totals(),
                   .switching = stalls.totals(),
                   .by_pass = totals_of(by_pass),
                   .by_kernel = totals_of(by_kernel),
                   .late_launches = late};
  result.switching.clock_switches = replayed.switches.size();
  result.total.clock_switches = replayed.switches.size();
  result.total.time_s += result.switching.time_s;
  result.total.energy_j += result.switching.energy_j;
  return result;
}

}  // namespace rubato
