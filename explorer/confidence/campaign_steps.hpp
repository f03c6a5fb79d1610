#pragma once
// Steps of campaigns: the clocks of a sweep, kernels drawn from it, and what these were measured to
// take. Read campaigns.hpp first.

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "models/calibration/sweep.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "models/table/profile_table.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// A spec with the clocks and the power limit of a sweep. Clocks and power caps of the sweep that
/// are above those of the spec become the highest. An automatic core clock is the boost clock.
class SweptClocks {
 public:
  SweptClocks(GpuSpec spec, const Sweep& sweep);

  /// The highest of the clocks is the default.
  [[nodiscard]] GpuSpec spec(const std::vector<ClockPair>& clocks) const;
  /// The clocks as applied. @param spec  as by spec()
  [[nodiscard]] ClockGrid grid(const GpuSpec& spec, std::vector<ClockPair> clocks) const {
    for (ClockPair& clock : clocks) clock = applied(clock);
    return {spec, std::move(clocks)};
  }

 private:
  [[nodiscard]] ClockPair applied(const ClockPair& clock) const {
    return {clock.mem, clock.core_mhz.value_or(boosts_mhz_[index(clock.mem)])};
  }

  GpuSpec spec_;
  std::vector<double> boosts_mhz_;  // shape [memory states]
};

/// Number of steps of each kind (traces, captured runs) for each group of kernels left out.
inline constexpr int steps_of_a_campaign = 8;

/// Each kernel with probability 1/2; any one if that leaves none.
[[nodiscard]] std::vector<const SweepKernel*> drawn_kernels(const Sweep& sweep,
                                                            std::mt19937_64& random);

/// A kernel of a trace or a captured run as a sweep knows it: its name and its class.
[[nodiscard]] Kernel launched_kernel(const SweepKernel& kernel);

/// How often each kernel is launched: as often as makes all take equally long, times a factor drawn
/// from 1/3 to 5/3, but at least once.
/// @param of_longest  launches of the longest kernel at equal times, > 0
/// @param most        most launches of any kernel
[[nodiscard]] std::vector<std::uint32_t> drawn_launches(
    const std::vector<const SweepKernel*>& kernels, double of_longest, double most,
    std::mt19937_64& random);

/// Measured time and energy of one launch at a clock; nothing if it was not measured there.
[[nodiscard]] std::optional<Cost> measured_cost(const SweepKernel& kernel, const ClockPair& clock);

/// Clocks at which all of these kernels were measured.
[[nodiscard]] std::vector<ClockPair> common_clocks(const std::vector<const SweepKernel*>& kernels);

/// Measured time and energy of a step.
/// @param launches, clocks  of each kernel; it was measured at that clock
[[nodiscard]] Cost measured_total(std::span<const std::uint32_t> launches,
                                  const std::vector<const SweepKernel*>& kernels,
                                  const std::vector<ClockPair>& clocks);

}  // namespace rubato
