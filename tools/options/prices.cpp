#include "tools/options/prices.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "tools/command_line.hpp"

namespace rubato {

namespace {

constexpr std::string_view host_power_help =
    "What the rest of the node (CPUs, memory, network, fans) draws for each GPU, W: counted in "
    "every energy, and in what plans are chosen by";
constexpr double most = 1e9;

}  // namespace

void add_host_power_option(CommandLine& app, std::optional<double>& host_power_w,
                           std::string_view fallback) {
  app.add_option("--host-power", host_power_w, fmt::format("{} {}", host_power_help, fallback));
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

void add_prices(CommandLine& app, PriceOptions& o) {
  app.add_option("--price-per-kwh", o.per_kwh,
                 "Goal cost: price of a kWh that the building takes, in any currency");
  app.add_option("--price-per-gpu-hour", o.per_gpu_hour,
                 "Goal cost: price of an hour of a GPU beside its energy: rent, or what it was "
                 "bought for over the hours it runs")
      ->capture_default_str();
  app.add_option("--pue", o.pue, "Goal cost: energy of the building over that of its computers")
      ->capture_default_str();
}

void add_price_options(CommandLine& app, PriceOptions& o) {
  add_prices(app, o);
  app.add_option("--host-power", o.host_power_w, std::string(host_power_help))
      ->capture_default_str();
}

void check_numbers(const PriceOptions& o) {
  struct Given {
    const char* option;
    double value, least;
  };
  for (const Given& one :
       {Given{"--price-per-gpu-hour", o.per_gpu_hour, 0.0}, Given{"--pue", o.pue, 1.0},
        Given{"--host-power", o.host_power_w, 0.0}}) {
    if (!(one.value >= one.least && one.value <= most))
      throw UsageError(fmt::format("{} is {}; expected a number from {} to {}", one.option,
                                   one.value, one.least, most));
  }
  if (o.per_kwh && !(*o.per_kwh > 0.0 && *o.per_kwh <= most))
    throw UsageError(
        fmt::format("--price-per-kwh is {}; expected a number > 0, at most {}", *o.per_kwh, most));
}

void check_given(const PriceOptions& o) {
  check_numbers(o);
  if (!o.per_kwh && (o.per_gpu_hour > 0.0 || o.pue != 1.0))
    throw UsageError("--price-per-gpu-hour and --pue do nothing without --price-per-kwh");
}

Prices prices_of(const PriceOptions& o) {
  if (!o.per_kwh)
    throw UsageError(
        "goal 'cost' needs --price-per-kwh",
        {.in = {}, .hint = "what a GPU's hour costs beside its energy is --price-per-gpu-hour"});
  return {.per_kwh = *o.per_kwh, .per_gpu_hour = o.per_gpu_hour, .pue = o.pue};
}

}  // namespace rubato
