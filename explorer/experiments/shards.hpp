#pragma once
// Sweeps in parts, for several machines at once.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "explorer/experiments/sweep_plan.hpp"

namespace rubato {

/// One part of a sweep, from 1.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;
};

/// "3/8" -> {3, 8}. @throws UsageError
[[nodiscard]] Shard parse_shard(std::string_view text);

/// Units of a shard, as ascending positions in `plan.units`. Every unit is in exactly one shard.
/// The choice depends on nothing but plan and count.
/// Longest processing time first (LPT): the setting with the longest estimate is taken first. Each
/// goes to the shard with the least work so far. A setting longer than a fair share (the total
/// over the number of shards) is split into its units.
/// Source: Graham, SIAM J. Appl. Math. 17(2), 1969.
[[nodiscard]] std::vector<std::size_t> units_of(const SweepPlan& plan, const Shard& shard);

/// Estimated time of these units on one core, s. Storing each setting's profile is counted once.
[[nodiscard]] double estimated_time_s(const SweepPlan& plan, std::span<const std::size_t> units);

}  // namespace rubato
