#pragma once
// How long activities take at most, whatever clocks are set and whatever runs beside them.

#include <span>
#include <vector>

#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/contention/pair_costs.hpp"
#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// The most that each activity takes in any replay without stalls, s, shape [activities]. For a
/// launch: its slowest clock beside the worst kernels of the other streams of its GPU, one of each
/// stream at most.
[[nodiscard]] std::vector<double> longest_times_s(const LaunchCosts& costs, PairCosts& pairs);

/// While a launch beside the main stream runs, main launches get on by at most so much of their
/// time at the fastest clock, s, shape [activities]; 0 for other activities. Empty where it is not
/// known: with several streams beside the main one, or too many pairs of kernels.
[[nodiscard]] std::vector<double> most_passed_s(const LaunchCosts& costs, PairCosts& pairs,
                                                const GpuLanes& lanes);

/// How much less energy collectives draw, at most, while a launch runs that pays for it
/// (GpuLanes::others_pay): J, shape [activities], 0 for other activities.
/// @param lost_w  by how much less they draw at most, by clock, shape [lanes][clocks]
[[nodiscard]] std::vector<double> most_lost_j(const LaunchCosts& costs, PairCosts& pairs,
                                              std::span<const GpuLanes> lanes,
                                              std::span<const std::vector<double>> lost_w);

}  // namespace rubato
