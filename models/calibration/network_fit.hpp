#pragma once
// The network model's constants from measured collectives.

#include <span>

#include "models/calibration/network_measurements.hpp"

namespace rubato {

/// The prior of a fit, in orders of magnitude: where it starts, and what constants stay at that
/// nothing was measured for.
[[nodiscard]] NetworkParameters prior_network_parameters();

/// Constants with least pseudo-Huber loss of errors of ln(time), plus the prior. Every system has
/// the same weight, and each of its series the same part of that. Each series' peak bus bandwidth
/// is taken as known.
/// @param series  not empty
[[nodiscard]] NetworkParameters fit_network(std::span<const CollectiveSeries> series);

}  // namespace rubato
