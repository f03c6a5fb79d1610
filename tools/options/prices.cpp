#include "tools/options/prices.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "tools/command_line.hpp"
#include "tools/options/values.hpp"

namespace rubato {

namespace {

constexpr double most = 1e9;

}  // namespace

void add_prices_option(CommandLine& app, std::string& text) {
  app.add_option("--prices LIST", text,
                 "Goal cost: kwh=0.12,gpu-hour=2,pue=1.2, in any currency. pue: energy of the "
                 "building over that of its computers [1]");
}

Prices prices_of(const std::string& text) {
  Prices prices;
  for (const auto& [name, value] : named_values("--prices", text, {"kwh", "gpu-hour", "pue"})) {
    const double least = name == "pue" ? 1.0 : 0.0;
    const double number = number_of("--prices", name, value, least, most);
    if (name == "pue") prices.pue = number;
    if (name == "gpu-hour") prices.per_gpu_hour = number;
    if (name == "kwh") prices.per_kwh = number;
  }
  if (!(prices.per_kwh > 0.0))
    throw UsageError("--prices needs a price of energy > 0",
                     {.in = {}, .hint = "e.g. --prices kwh=0.12,gpu-hour=2"});
  return prices;
}

void add_host_power_option(CommandLine& app, std::optional<double>& host_power_w,
                           std::string_view fallback) {
  app.add_option("--host-power W", host_power_w,
                 fmt::format("Power of the rest of the node for each GPU, W; added to every energy "
                             "{}",
                             fallback));
}

void check_host_power(const std::optional<double>& host_power_w) {
  if (host_power_w && !(*host_power_w >= 0.0 && *host_power_w <= most))
    throw UsageError(
        fmt::format("--host-power is {}; expected a number from 0 to {}", *host_power_w, most));
}

std::string beside_gpu(double host_power_w) {
  if (host_power_w == 0.0) return {};
  return fmt::format(", and {} W beside it, the rest of the node, in every energy",
                     format_number(host_power_w));
}

}  // namespace rubato
