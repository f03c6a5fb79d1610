#include "traces/pipeline/profile_checks.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

namespace rubato {

bool ProfileChecks::add(const std::string& where, const ProfileKey& key, const ClockOption& option,
                        ErrorList& errors) {
  const std::array frequency{ReadColumn{.name = "frequency", .quantity = Quantity::clock}},
      time{ReadColumn{.name = "time", .quantity = Quantity::time}},
      limit{ReadColumn{.name = "power_limit", .quantity = Quantity::power}};
  const std::array power{ReadColumn{.name = "energy", .quantity = Quantity::energy},
                         ReadColumn{.name = "time", .quantity = Quantity::time, .divides = true}};
  bool right = true;
  const auto expect = [&](std::string_view what, double value, std::string_view unit,
                          const Bounds& bounds, std::span<const ReadColumn> columns) {
    const auto wrong = implausible(what, value, unit, bounds, columns);
    if (wrong) errors.add(fmt::format("{}: {}", where, *wrong));
    right = right && !wrong;
  };
  expect("frequency", option.core_mhz, "MHz", core_clock_mhz, frequency);
  expect("time", option.time_s, "s", run_time_s, time);
  if (option.power_limit_w > 0.0)
    expect("power_limit", option.power_limit_w, "W", board_power_w, limit);
  if (right && option.energy_j > 0.0)
    expect("energy over time", option.energy_j / option.time_s, "W", board_power_w, power);
  if (!right) return false;
  Rows& rows = rows_[key];
  rows.settings.push_back({.time_s = option.time_s,
                           .core_mhz = option.core_mhz,
                           .mem_mhz = 0.0,
                           .power_limit_w = option.power_limit_w});
  rows.where.push_back(where);
  return true;
}

void ProfileChecks::expect_usual_times(ErrorList& errors) const {
  const ReadColumn time{.name = "time", .quantity = Quantity::time};
  for (const auto& [key, rows] : rows_) {
    for (const OddTime& odd : odd_times(rows.settings))
      errors.add(fmt::format("{}: {} of stage {}: {}", rows.where[odd.at], name_of(key.second),
                             key.first,
                             odd_time_text(odd, rows.settings, time, rows.where[odd.usual])));
  }
}

void expect_plausible_lags(const PipelineWork& work, const std::string& edges) {
  constexpr double most_passes = 10.0;
  double longest_s = 0.0;
  for (const PassType& type : work.types)
    for (const ClockOption& option : type.options) longest_s = std::max(longest_s, option.time_s);
  const ReadColumn lag{.name = "lag_s", .quantity = Quantity::time};
  ErrorList errors;
  for (const Dependency& d : work.schedule.dependencies) {
    if (d.lag_s <= most_passes * longest_s) continue;
    // A thousandth of the longest pass to ten of it: what a transfer may take.
    const Bounds expected{1e-3 * longest_s, most_passes * longest_s};
    const auto wrong = implausible("lag_s", d.lag_s, "s", expected, std::span(&lag, 1));
    errors.add(fmt::format("{}: from {} to {}: {}; the longest pass takes {:.3g} s", edges,
                           describe(work.schedule.passes[index(d.from)]),
                           describe(work.schedule.passes[index(d.to)]), wrong.value_or("lag_s"),
                           longest_s));
  }
  errors.throw_if_any();
}

}  // namespace rubato
