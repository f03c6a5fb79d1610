#pragma once
// How long activities take at most, whatever clocks are set and whatever runs beside them.

#include <cstdint>
#include <span>
#include <vector>

#include "explorer/graph/contention/pair_costs.hpp"
#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// No replay in which nothing stalls has an activity take longer: of launches the slowest at any
/// clock beside any kernels of the other streams of their GPU, one of each at most. Shape
/// [activities].
[[nodiscard]] std::vector<double> longest_times_s(const LaunchCosts& costs, PairCosts& pairs);

/// The most that is lost while a launch of a GPU runs, whatever runs beside it: J, shape
/// [launches].
/// @param lost_w  by clock
[[nodiscard]] std::vector<double> most_lost_j(const LaunchCosts& costs, PairCosts& pairs,
                                              std::uint32_t gpu,
                                              std::span<const std::uint32_t> launches,
                                              std::span<const double> lost_w);

}  // namespace rubato
