#include "explorer/confidence/error_reach.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

namespace {

// How far a clock lies outside those the GPU was fitted at, in its logarithm.
double beyond_fitted(const GpuSpec& spec, double core_mhz) {
  if (!spec.fitted_range || !(core_mhz > 0.0)) return 0.0;
  return std::max({0.0, std::log(spec.fitted_range->min_core_mhz / core_mhz),
                   std::log(core_mhz / spec.fitted_range->max_core_mhz)});
}

}  // namespace

ClockInEffect clock_in_effect(const GpuSpec& spec, const ClockPair& asked,
                              const OperatingPoint& point) {
  // What was measured may not say at which clock.
  const double asked_mhz = effective_core_mhz(spec, asked);
  return {asked.mem, point.core_mhz > 0.0 ? point.core_mhz : asked_mhz, asked_mhz};
}

double error_reach(const GpuSpec& spec, const ClockInEffect& usual, const ClockInEffect& chosen) {
  constexpr double far = 0.3, least = 0.35;
  // Searches for the clock that a power limit allows end within this, steps of clocks are larger.
  constexpr double same_clock = 1e-3;
  constexpr double rounding = 1e-9;  // fitted boost clocks are off by as much
  const double in_effect = std::abs(std::log(chosen.core_mhz / usual.core_mhz));
  // A lower power limit asks for no other clock.
  const double distance = std::max(std::abs(std::log(chosen.asked_mhz / usual.asked_mhz)),
                                   in_effect < same_clock ? 0.0 : in_effect) +
                          std::abs(std::log(spec.mem_states[index(chosen.mem)].mem_mhz /
                                            spec.mem_states[index(usual.mem)].mem_mhz));
  if (chosen.mem == usual.mem && distance < rounding) return 0.0;
  const bool one_clock = chosen.mem == usual.mem && in_effect < same_clock;
  // Ranges of clocks left out at the ends of sweeps: 3 to 5 times the errors of those inside
  // (docs/gpus.md, "Ranges of clocks left out").
  constexpr double more_beyond = 3.0, far_beyond = 0.1;
  const double beyond = one_clock ? 0.0
                                  : std::max(beyond_fitted(spec, chosen.core_mhz),
                                             beyond_fitted(spec, usual.core_mhz));
  return std::sqrt(least + (1.0 - least) * std::min(1.0, distance / far)) *
         (1.0 + more_beyond * std::min(1.0, beyond / far_beyond));
}

double error_reach(const GpuSpec& spec, const ClockGrid& grid, ClockId clock) {
  const auto unlimited = [&](ClockId id) -> ClockInEffect {
    const double core_mhz = effective_core_mhz(spec, grid[id]);
    return {grid[id].mem, core_mhz, core_mhz};
  };
  return error_reach(spec, unlimited(grid.default_clock()), unlimited(clock));
}

double error_reach(const GpuModel& model, const ClockGrid& grid, KernelId kernel, ClockId clock) {
  const auto at = [&](ClockId id) {
    return clock_in_effect(model.spec(), grid[id], model.evaluate(kernel, grid[id]));
  };
  return clock == grid.default_clock()
             ? 0.0
             : error_reach(model.spec(), at(grid.default_clock()), at(clock));
}

}  // namespace rubato
