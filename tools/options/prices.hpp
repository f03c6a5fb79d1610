#pragma once
// What energy and time cost, and what the rest of the node draws.

#include <optional>
#include <string>
#include <string_view>

#include "explorer/goal.hpp"

namespace rubato {

class CommandLine;

/// Prices and host power as the command line gives them.
struct PriceOptions {
  std::optional<double> per_kwh;
  double per_gpu_hour = 0.0, pue = 1.0, host_power_w = 0.0;
};

/// Adds --price-per-kwh, --price-per-gpu-hour and --pue. `options` must outlive parsing.
void add_prices(CommandLine& app, PriceOptions& options);

/// Adds what add_prices() adds, and --host-power.
void add_price_options(CommandLine& app, PriceOptions& options);

/// Adds --host-power alone, of commands without prices.
/// @param fallback  what holds without it, as help says it
void add_host_power_option(CommandLine& app, std::optional<double>& host_power_w,
                           std::string_view fallback = "[0]");

/// @throws UsageError for a number out of range
void check_host_power(const std::optional<double>& host_power_w);

/// ", and 200 W beside it, the rest of the node, in every energy"; empty for 0.
[[nodiscard]] std::string beside_gpu(double host_power_w);

/// @throws UsageError for a number out of range
void check_numbers(const PriceOptions& options);

/// Checks prices of a command that can do without. @throws UsageError if there are others without
/// that of energy; as check_numbers()
void check_given(const PriceOptions& options);

/// The prices of goal `cost`. @throws UsageError without a price of energy
[[nodiscard]] Prices prices_of(const PriceOptions& options);

}  // namespace rubato
