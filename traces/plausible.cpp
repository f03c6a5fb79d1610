#include "traces/plausible.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace rubato {

namespace {

constexpr auto units = std::to_array<MeasuredUnit>(
    {{"s", Quantity::time, 1.0},          {"ms", Quantity::time, 1e-3},
     {"us", Quantity::time, 1e-6},        {"ns", Quantity::time, 1e-9},
     {"min", Quantity::time, 60.0},       {"h", Quantity::time, 3600.0},
     {"W", Quantity::power, 1.0},         {"mW", Quantity::power, 1e-3},
     {"uW", Quantity::power, 1e-6},       {"kW", Quantity::power, 1e3},
     {"J", Quantity::energy, 1.0},        {"mJ", Quantity::energy, 1e-3},
     {"uJ", Quantity::energy, 1e-6},      {"nJ", Quantity::energy, 1e-9},
     {"kJ", Quantity::energy, 1e3},       {"Wh", Quantity::energy, 3600.0},
     {"kWh", Quantity::energy, 3.6e6},    {"MHz", Quantity::clock, 1.0},
     {"kHz", Quantity::clock, 1e-3},      {"Hz", Quantity::clock, 1e-6},
     {"GHz", Quantity::clock, 1e3},       {"bytes", Quantity::bytes, 1.0},
     {"KB", Quantity::bytes, 1e3},        {"MB", Quantity::bytes, 1e6},
     {"GB", Quantity::bytes, 1e9},        {"KiB", Quantity::bytes, 1024.0},
     {"MiB", Quantity::bytes, 1048576.0}, {"1", Quantity::number, 1.0}});

bool within(const Bounds& bounds, double value) {
  return value >= bounds.low && value <= bounds.high;
}

// " (355.6 W if power_w is in mW; 88 W if ...)": units of the columns that bring the value into the
// bounds, the nearest to the middle of what is believed first. Rare ones if there is no other.
std::string unit_hint(double value, std::string_view unit, const Bounds& bounds,
                      std::span<const ReadColumn> columns) {
  constexpr std::array rare{"min", "h", "nJ", "kWh"};
  constexpr std::size_t most = 3;
  const double middle = std::log(bounds.low) / 2.0 + std::log(bounds.high) / 2.0;
  std::vector<std::tuple<bool, double, std::string>> hints;
  for (const ReadColumn& column : columns) {
    for (const MeasuredUnit& other : units) {
      if (other.quantity != column.quantity) continue;
      const double factor = other.scale / column.scale;
      const double meant = column.divides ? value / factor : value * factor;
      if (!within(bounds, meant)) continue;
      hints.emplace_back(
          std::ranges::find(rare, other.name) != rare.end(), std::abs(std::log(meant) - middle),
          fmt::format(
              "{:.6g} {} if {} is in {}{}", meant, unit, column.name, other.name,
              column.option.empty() ? "" : fmt::format(": {}{}", column.option, other.name)));
    }
  }
  std::ranges::sort(hints);
  if (!hints.empty() && !std::get<bool>(hints.front()))
    std::erase_if(hints, [](const auto& hint) { return std::get<bool>(hint); });
  std::string text;
  for (std::size_t i = 0; i < std::min(hints.size(), most); ++i)
    text += fmt::format("{}{}", i == 0 ? " (" : "; ", std::get<std::string>(hints[i]));
  return text.empty() ? text : text + ")";
}

double ratio(double a, double b) { return a > 0.0 && b > 0.0 ? std::max(a / b, b / a) : 1.0; }

// By how much the times of two settings of the same work may differ.
double most_ratio(const TimedSetting& a, const TimedSetting& b) {
  constexpr double believed = 8.0;
  // A clock that the driver chooses: no GPU's core clocks reach further.
  constexpr double unknown_core = 10.0;
  const bool one_unknown = (a.core_mhz > 0.0) != (b.core_mhz > 0.0);
  const double limits = ratio(a.power_limit_w, b.power_limit_w);
  return believed * (one_unknown ? unknown_core : ratio(a.core_mhz, b.core_mhz)) *
         ratio(a.mem_mhz, b.mem_mhz) * limits * limits;
}

}  // namespace

const MeasuredUnit* find_unit(std::string_view name) noexcept {
  const auto* found = std::ranges::find(units, name, &MeasuredUnit::name);
  return found == units.end() ? nullptr : found;
}

std::string unit_names(std::optional<Quantity> quantity) {
  std::string text;
  for (const MeasuredUnit& unit : units) {
    if (quantity && unit.quantity != *quantity) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", unit.name);
  }
  return text;
}

std::optional<std::string> implausible(std::string_view what, double value, std::string_view unit,
                                       const Bounds& bounds, std::span<const ReadColumn> columns) {
  if (within(bounds, value)) return std::nullopt;
  return fmt::format("{} is {:.6g} {}; expected {:g} to {:g} {}{}", what, value, unit, bounds.low,
                     bounds.high, unit, unit_hint(value, unit, bounds, columns));
}

std::optional<std::string> implausible_launch_time(const std::optional<double>& measured_time_s) {
  if (!measured_time_s) return std::nullopt;
  const std::array columns{ReadColumn{.name = "measured_time_s", .quantity = Quantity::time}};
  return implausible("measured_time_s", *measured_time_s, "s", launch_time_s, columns);
}

std::vector<OddTime> odd_times(std::span<const TimedSetting> same_work) {
  std::vector<OddTime> odd;
  if (same_work.size() < 2) return odd;
  std::vector<std::size_t> order(same_work.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::ranges::nth_element(order, middle, {}, [&](std::size_t i) { return same_work[i].time_s; });
  const std::size_t usual = *middle;
  for (std::size_t i = 0; i < same_work.size(); ++i) {
    const double most = most_ratio(same_work[i], same_work[usual]);
    const Bounds expected{same_work[usual].time_s / most, same_work[usual].time_s * most};
    if (!within(expected, same_work[i].time_s)) odd.push_back({i, usual, expected});
  }
  return odd;
}

std::string odd_time_text(const OddTime& odd, std::span<const TimedSetting> same_work,
                          const ReadColumn& column, std::string_view where) {
  const std::array columns{column};
  const double time_s = same_work[odd.at].time_s;
  return fmt::format(
      "{} is {:.6g} s, but {:.6g} s in {}; expected {:.3g} to {:.3g} s at these "
      "clocks{}",
      column.name, time_s, same_work[odd.usual].time_s, where, odd.expected.low, odd.expected.high,
      unit_hint(time_s, "s", odd.expected, columns));
}

}  // namespace rubato
