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

/// Units of a shard, as ascending positions in `plan.units`. Every unit is in exactly one shard;
/// the choice depends on nothing but plan and count. Longest estimated settings first, each to the
/// shard with the least work; a setting longer than a fair share is split.
[[nodiscard]] std::vector<std::size_t> units_of(const SweepPlan& plan, const Shard& shard);

/// Estimated time of these units on one core, each setting's profile counted once, s.
[[nodiscard]] double estimated_time_s(const SweepPlan& plan, std::span<const std::size_t> units);

}  // namespace rubato
