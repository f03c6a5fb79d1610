#pragma once
// The network model's constants from measured collectives.

#include <span>

#include "models/calibration/network_measurements.hpp"

namespace rubato {

/// Where a fit starts and what holds constants nothing was measured for: orders of magnitude.
[[nodiscard]] NetworkParameters prior_network_parameters();

/// Constants with least robust error of ln(time), every system with the same weight and each of its
/// series with the same part of it; series know their peak bandwidth.
/// @param series  not empty
[[nodiscard]] NetworkParameters fit_network(std::span<const CollectiveSeries> series);

}  // namespace rubato
