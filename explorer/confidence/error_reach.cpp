#include "explorer/confidence/error_reach.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "models/kernel/model.hpp"
#include "models/validation/error_growth.hpp"

namespace rubato {

ClockInEffect clock_in_effect(const GpuSpec& spec, const ClockPair& asked,
                              const OperatingPoint& point) {
  // A measured point may not say at which clock it ran.
  const double asked_mhz = effective_core_mhz(spec, asked);
  return {asked.mem, point.core_mhz > 0.0 ? point.core_mhz : asked_mhz, asked_mhz};
}

ErrorReach error_reach(const GpuSpec& spec, const ClockInEffect& usual,
                       const ClockInEffect& chosen) {
  constexpr double far = 0.3, least = 0.35;
  // Searches for the clock that a power limit allows end this near to it. Clock steps are larger.
  constexpr double same_clock = 1e-3;
  constexpr double rounding = 1e-9;  // fitted boost clocks are off by as much
  const double in_effect = std::abs(std::log(chosen.core_mhz / usual.core_mhz));
  // Both distances, since a lower power limit changes the clock in effect without another request.
  const double distance = std::max(std::abs(std::log(chosen.asked_mhz / usual.asked_mhz)),
                                   in_effect < same_clock ? 0.0 : in_effect) +
                          std::abs(std::log(spec.mem_states[index(chosen.mem)].mem_mhz /
                                            spec.mem_states[index(usual.mem)].mem_mhz));
  if (chosen.mem == usual.mem && distance < rounding) return {};
  const bool one_clock = chosen.mem == usual.mem && in_effect < same_clock;
  const double inside = std::sqrt(least + (1.0 - least) * std::min(1.0, distance / far));
  if (one_clock) return {inside, inside};
  const RelativeErrors of_chosen = growth_at(spec, chosen.core_mhz),
                       of_usual = growth_at(spec, usual.core_mhz);
  return {inside * std::max(of_chosen.time, of_usual.time),
          inside * std::max(of_chosen.energy, of_usual.energy)};
}

ErrorReach error_reach(const GpuSpec& spec, const ClockGrid& grid, ClockId clock) {
  const auto unlimited = [&](ClockId id) -> ClockInEffect {
    const double core_mhz = effective_core_mhz(spec, grid[id]);
    return {grid[id].mem, core_mhz, core_mhz};
  };
  // A limit changes clocks nobody knows of here: as far as any change.
  if (grid[clock].power_limit_w != grid[grid.default_clock()].power_limit_w) return {1.0, 1.0};
  return error_reach(spec, unlimited(grid.default_clock()), unlimited(clock));
}

ErrorReach error_reach(const GpuModel& model, const ClockGrid& grid, KernelId kernel,
                       ClockId clock) {
  const auto at = [&](ClockId id) {
    return clock_in_effect(model.spec(), grid[id], model.evaluate(kernel, grid[id]));
  };
  return clock == grid.default_clock()
             ? ErrorReach{}
             : error_reach(model.spec(), at(grid.default_clock()), at(clock));
}

TimeBand time_band(const GpuSpec& spec, const ClockInEffect& usual, const ClockInEffect& chosen) {
  constexpr double at_limit = 1e-9;  // relative
  const double ratio = usual.asked_mhz / chosen.asked_mhz;
  const double low = std::min(ratio, 1.0);
  if (usual.mem == chosen.mem) {
    // Where the clocks of crossbar and L2 step, bandwidth falls by more than the core clock.
    const MemState& mem = spec.mem_states[index(usual.mem)];
    const double bandwidths =
        dram_bandwidth(spec, mem, usual.asked_mhz) / dram_bandwidth(spec, mem, chosen.asked_mhz);
    return {std::min(low, bandwidths), std::max({ratio, bandwidths, 1.0})};
  }
  const bool slower_memory =
      spec.mem_states[index(chosen.mem)].mem_mhz <= spec.mem_states[index(usual.mem)].mem_mhz;
  // Power that a lower memory clock saves raises a core clock that a limit had lowered.
  const bool limited = usual.core_mhz < (1.0 - at_limit) * usual.asked_mhz;
  return {.low = slower_memory && !limited ? low : 0.0};
}

TimeBand time_band(const GpuSpec& spec, const ClockInEffect& usual, double usual_limit_w,
                   const ClockInEffect& chosen, double chosen_limit_w) {
  TimeBand band = time_band(spec, usual, chosen);
  if (chosen_limit_w > usual_limit_w) band.low = 0.0;
  if (chosen_limit_w < usual_limit_w) band.high = std::numeric_limits<double>::infinity();
  return band;
}

std::vector<KernelClockChange> changes_of_kernels(const Trace& trace, const GpuModel& model,
                                                  const ClockGrid& grid, const Plan& plan) {
  std::map<std::pair<KernelId, ClockId>, double> launches;
  const std::vector<Site> all = sites(trace, plan);
  for (std::size_t i = 0; i < all.size(); ++i)
    launches[{all[i].kernel, plan.clock_of_site[i]}] += all[i].repeat;
  std::vector<double> of_kernel(trace.kernels.size());
  for (const auto& [at, count] : launches) of_kernel[index(at.first)] += count;
  std::vector<KernelClockChange> changes(trace.kernels.size());
  if (model.measured() == nullptr) {
    for (const auto& [at, count] : launches) changes[index(at.first)].band = {0.0, 0.0};
  }
  for (const auto& [at, count] : launches) {
    const auto& [kernel, clock] = at;
    auto& [most, band] = changes[index(kernel)];
    if (model.measured() != nullptr) {
      const ErrorReach own = error_reach(model.spec(), grid, clock);
      most = {std::max(most.time, own.time), std::max(most.energy, own.energy)};
      continue;
    }
    const auto in_effect = [&, of = kernel](ClockId id) {
      return clock_in_effect(model.spec(), grid[id], model.evaluate(of, grid[id]));
    };
    const ClockInEffect usual = in_effect(grid.default_clock()), chosen = in_effect(clock);
    if (clock != grid.default_clock()) {
      const ErrorReach own = error_reach(model.spec(), usual, chosen);
      most = {std::max(most.time, own.time), std::max(most.energy, own.energy)};
    }
    const auto limit_w = [&](ClockId id) {
      return grid[id].power_limit_w.value_or(model.power_limit_w());
    };
    const TimeBand own =
        time_band(model.spec(), usual, limit_w(grid.default_clock()), chosen, limit_w(clock));
    const double share = count / of_kernel[index(kernel)];
    band = {band.low + share * own.low, band.high + share * own.high};
  }
  return changes;
}

Cost with_error(const Cost& cost, const ErrorReach& reach, const Cost& logarithms) {
  return {cost.time_s * std::exp(reach.time * logarithms.time_s),
          cost.energy_j * std::exp(reach.energy * logarithms.energy_j)};
}

}  // namespace rubato
