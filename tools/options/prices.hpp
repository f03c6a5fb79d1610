#pragma once
// What energy and time cost, and what the rest of the node draws.

#include <optional>

#include "explorer/goal.hpp"

namespace rubato {

class CommandLine;

/// As given.
struct PriceOptions {
  std::optional<double> per_kwh;
  double per_gpu_hour = 0.0, pue = 1.0, host_power_w = 0.0;
};

/// Adds --price-per-kwh, --price-per-gpu-hour, --pue and --host-power. `options` must outlive
/// parsing.
void add_price_options(CommandLine& app, PriceOptions& options);

/// @throws UsageError for a number out of range
void check_numbers(const PriceOptions& options);

/// Of goal `cost`. @throws UsageError without a price of energy
[[nodiscard]] Prices prices_of(const PriceOptions& options);

}  // namespace rubato
