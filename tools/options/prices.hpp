#pragma once
// What energy and time cost, and what the rest of the node draws.

#include <optional>
#include <string>
#include <string_view>

#include "explorer/goal.hpp"

namespace rubato {

class CommandLine;

/// Adds --prices. `text` must outlive parsing.
void add_prices_option(CommandLine& app, std::string& text);

/// "kwh=0.12,gpu-hour=2,pue=1.2". @throws UsageError
[[nodiscard]] Prices prices_of(const std::string& text);

/// Adds --host-power.
/// @param fallback  what holds without it, as help says it
void add_host_power_option(CommandLine& app, std::optional<double>& host_power_w,
                           std::string_view fallback = "[0]");

/// @throws UsageError for a number out of range
void check_host_power(const std::optional<double>& host_power_w);

/// ", and 200 W beside it, the rest of the node, in every energy"; empty for 0.
[[nodiscard]] std::string beside_gpu(double host_power_w);

}  // namespace rubato
