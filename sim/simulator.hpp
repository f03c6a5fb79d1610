#pragma once
// Replays a trace under a plan. Every total a report shows comes from here.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.hpp"
#include "models/clock_grid.hpp"
#include "models/gpu_model.hpp"
#include "sim/plan.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Sums over one iteration.
struct Totals {
  double time_s = 0.0;
  double energy_j = 0.0;
  std::uint64_t launches = 0;
  std::uint64_t clock_switches = 0;  ///< launches whose clock differs from the one before
  std::uint64_t power_limited_launches = 0;

  [[nodiscard]] double average_power_w() const noexcept { return energy_j / time_s; }
};

/// What a switch of clocks costs. Both zero: the published setting, where
/// switching was not modelled.
struct SwitchCost {
  double stall_s =
      0.0;  ///< time the device waits at each change of clock, >= 0; idle power is drawn
  double energy_j = 0.0;  ///< on top of idle power, >= 0
};

/// Sums per pass and per kernel add up to `total` except for switch costs,
/// which are only in `total` and `switching`.
struct SimResult {
  Totals total;
  Totals switching;
  std::vector<Totals> by_pass;    ///< indexed by Pass, zero launches where a pass is absent
  std::vector<Totals> by_kernel;  ///< shape [kernels]
};

/// One launch of the replayed iteration, in order.
struct TimedLaunch {
  SiteId site;
  KernelId kernel;
  ClockId clock;
  OperatingPoint point;
};

/// Every launch of one iteration, repeats expanded.
/// @throws DataError if the plan does not fit trace and grid
[[nodiscard]] std::vector<TimedLaunch> replay(const Trace& trace, const GpuModel& model,
                                              const ClockGrid& grid, const Plan& plan);

/// Replays one iteration, launch by launch; the clocks of the previous iteration's
/// last launch are in force at the start (steady state).
/// @throws DataError if the plan does not fit trace and grid
[[nodiscard]] SimResult simulate(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                                 const Plan& plan, const SwitchCost& switch_cost = {});

}  // namespace rubato
