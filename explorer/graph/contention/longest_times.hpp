#pragma once
// How long activities take at most, whatever clocks are set and whatever runs beside them.

#include <span>
#include <vector>

#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/contention/pair_costs.hpp"
#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// No replay in which nothing stalls has an activity take longer: of launches the slowest at any
/// clock beside any kernels of the other streams of their GPU, one of each at most. Shape
/// [activities].
[[nodiscard]] std::vector<double> longest_times_s(const LaunchCosts& costs, PairCosts& pairs);

/// How much of the least time of main launches passes at most while one beside them runs: shape
/// [activities], 0 of all others; empty: not known, of several streams beside the main one or too
/// many kernels.
[[nodiscard]] std::vector<double> most_passed_s(const LaunchCosts& costs, PairCosts& pairs,
                                                const GpuLanes& lanes);

/// The most that is lost while launches run that pay for it (GpuLanes::others_pay), whatever runs
/// beside them: J, shape [activities], 0 of all others.
/// @param lost_w  shape [lanes][clocks]
[[nodiscard]] std::vector<double> most_lost_j(const LaunchCosts& costs, PairCosts& pairs,
                                              std::span<const GpuLanes> lanes,
                                              std::span<const std::vector<double>> lost_w);

}  // namespace rubato
