#pragma once
// Steps of campaigns: the clocks of a sweep, kernels drawn from it, and what they were measured to
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

namespace rubato {

/// A spec whose clocks and power limit are those of a sweep: what it applied or logged is no upper
/// bound, and an automatic core clock is the boost clock.
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

/// Of each kind, for each group of kernels that was left out.
inline constexpr int steps_of_a_campaign = 8;

/// Half of the kernels, at least one.
[[nodiscard]] std::vector<const SweepKernel*> drawn_kernels(const Sweep& sweep,
                                                            std::mt19937_64& random);

/// How often each kernel is launched so that all take about as long, give or take a factor of
/// three.
/// @param of_longest  launches of the longest kernel, > 0
/// @param most        launches of any
[[nodiscard]] std::vector<std::uint32_t> drawn_launches(
    const std::vector<const SweepKernel*>& kernels, double of_longest, double most,
    std::mt19937_64& random);

/// Of a kernel at a clock, if it was measured there.
[[nodiscard]] std::optional<Cost> measured_cost(const SweepKernel& kernel, const ClockPair& clock);

/// Clocks at which all of them were measured.
[[nodiscard]] std::vector<ClockPair> common_clocks(const std::vector<const SweepKernel*>& kernels);

/// @param launches, clocks  of each of the kernels, at which it was measured
[[nodiscard]] Cost measured_total(std::span<const std::uint32_t> launches,
                                  const std::vector<const SweepKernel*>& kernels,
                                  const std::vector<ClockPair>& clocks);

}  // namespace rubato
