#pragma once
// The axes of an experiment: what can be varied, in which unit, with which default.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace rubato {

/// A value of axis `clocks`: the largest grid in each GPU's own spec.
inline constexpr std::string_view all_clocks = "all";

/// Position in axes() and in a Point.
enum class AxisId : std::size_t {
  gpu,
  trace,
  capture,
  captured_clock,
  model,
  batch,
  sequence,
  tensor_parallel,
  data_parallel,
  pipeline_parallel,
  microbatches,
  schedule,
  power_limit_w,
  clocks,
  switch_stall_us,
  switch_energy_j,
  switch_latency_us,
  switch_dwell_us,
  granularity,
  aggregation,
  goal,
  slack_pct,
  tolerance_pct,
  odds_pct,
  energy_budget_j,
  power_budget_w,
  host_power_w,
  price_per_kwh,
  price_per_gpu_hour,
  pue,
  seed
};
inline constexpr std::size_t axis_count = 31;

/// What the values of an axis are. positive_or_spec: a number > 0, or the word "spec", which stands
/// for the value in the GPU's spec (axis power_limit_w).
enum class AxisKind { text, count_from_0, count_from_1, non_negative, positive, positive_or_spec };

/// Missing where the axis does not apply, e.g. the batch of a fixed trace.
using AxisValue = std::variant<std::monostate, double, std::string>;

struct Axis {
  AxisId id;
  std::string_view key;  ///< in experiment files; ends in the unit
  AxisKind kind;
  AxisValue fallback;     ///< used where neither axes nor defaults name one
  std::string_view help;  ///< one line, for the template
  std::string_view example = {};
};

/// All axes in the order of AxisId.
[[nodiscard]] std::span<const Axis> axes();

/// One value for each axis.
struct Point {
  std::array<AxisValue, axis_count> values;

  [[nodiscard]] const AxisValue& operator[](AxisId id) const {
    return values[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] AxisValue& operator[](AxisId id) { return values[static_cast<std::size_t>(id)]; }

  /// The value of an axis that always has one of that type.
  [[nodiscard]] const std::string& text(AxisId id) const {
    return std::get<std::string>((*this)[id]);
  }
  [[nodiscard]] double number(AxisId id) const { return std::get<double>((*this)[id]); }
  /// Nothing where the axis has a word or does not apply.
  [[nodiscard]] std::optional<double> optional_number(AxisId id) const {
    const auto* value = std::get_if<double>(&(*this)[id]);
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }
  [[nodiscard]] std::uint64_t count(AxisId id) const {
    return static_cast<std::uint64_t>(number(id));
  }
};

/// "8", "gpt3-xl", "-" for a missing value.
[[nodiscard]] std::string shown(const AxisValue& value);

}  // namespace rubato
