#pragma once
// The network model's constants from measured collectives.

#include <span>
#include <string_view>

#include "models/calibration/network_measurements.hpp"

namespace rubato {

/// The system whose latencies are those of the constants: NCCL 2.27 in CUDA graphs, so no host that
/// launches is in its times.
inline constexpr std::string_view reference_system = "a100-nccl-2.27";

/// The prior of a fit, in orders of magnitude: where it starts, and what constants stay at that
/// nothing was measured for.
[[nodiscard]] NetworkParameters prior_network_parameters();

/// Constants with least pseudo-Huber loss of errors of ln(time), plus the prior. Every system has
/// the same weight, and each of its series the same part of that. Each but the reference has a
/// factor on its latencies, which is fitted too and forgotten. Bandwidths are those of the longest
/// messages (CollectiveSeries::endless_gbs).
/// @param series  not empty
[[nodiscard]] NetworkParameters fit_network(std::span<const CollectiveSeries> series);

}  // namespace rubato
