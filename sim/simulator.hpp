#pragma once
// Replays a trace under a plan. Every total a report shows comes from here.

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/plan.hpp"
#include "sim/switch_model.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Sums over one iteration.
struct Totals {
  double time_s = 0.0;
  double energy_j = 0.0;
  std::uint64_t launches = 0;
  std::uint64_t clock_switches = 0;
  std::uint64_t power_limited_launches = 0;

  [[nodiscard]] double average_power_w() const noexcept { return energy_j / time_s; }
};

/// Sums per pass and per kernel add up to `total` except for switch costs,
/// which are only in `total` and `switching`.
struct SimResult {
  Totals total;
  Totals switching;
  std::vector<Totals> by_pass;      ///< indexed by Pass, zero launches where a pass is absent
  std::vector<Totals> by_kernel;    ///< shape [kernels]
  std::uint64_t late_launches = 0;  ///< ran, in part at least, at another clock than planned
};

/// Counts the rest of the node: so many watts for as long as everything takes.
void add_power(Totals& totals, double power_w) noexcept;
void add_power(SimResult& result, double power_w) noexcept;

/// One launch of the replayed iteration, in order.
struct TimedLaunch {
  SiteId site;
  KernelId kernel;
  ClockId clock;         ///< in force when it begins
  double start_s = 0.0;  ///< from the begin of the iteration
  OperatingPoint point;  ///< of the whole launch; the core clock is the one at its begin
  bool late = false;     ///< the planned clock was not in force throughout
};

/// One change of clock of the replayed iteration.
struct TimedSwitch {
  double request_s = 0.0;  ///< negative: issued in the iteration before
  double stall_from_s = 0.0;
  double effect_s = 0.0;
  ClockId to;
  double energy_j = 0.0;  ///< idle power during the stall included
};

/// One iteration, event by event. Times are seconds from its begin.
struct ReplayedIteration {
  std::vector<TimedLaunch> launches;
  std::vector<TimedSwitch> switches;
};

/// Every launch of one iteration, repeats expanded, in steady state: iterations like it came
/// before. The plan is known ahead, so a change is requested early enough to take effect where it
/// is wanted; if an earlier change is still under way or the dwell is not over, it is requested as
/// soon as that allows, kernels run on at the old clock, and clocks no longer wanted are skipped.
/// @param cells  of evaluate_all(model, grid), where they are at hand; empty: evaluated as needed
/// @throws DataError if the plan does not fit trace and grid, UsageError as validate
[[nodiscard]] ReplayedIteration replay(const Trace& trace, const GpuModel& model,
                                       const ClockGrid& grid, const Plan& plan,
                                       const SwitchModel& switching = {},
                                       std::span<const OperatingPoint> cells = {});

/// Totals of replay().
/// @throws what replay throws
[[nodiscard]] SimResult simulate(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                                 const Plan& plan, const SwitchModel& switching = {},
                                 std::span<const OperatingPoint> cells = {});

}  // namespace rubato
