#include "explorer/results/stored_rows.hpp"

#include <array>
#include <bit>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

// Least significant byte first.
void append_bits(std::string& bytes, double number) {
  auto bits = std::bit_cast<std::uint64_t>(number);
  if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
  const auto raw = std::bit_cast<std::array<char, sizeof bits>>(bits);
  bytes.append(raw.data(), raw.size());
}

void append_value(std::string& bytes, const SqlValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return append_bits(bytes, *number);
  if (const auto* count = std::get_if<std::int64_t>(&value)) bytes += std::to_string(*count);
  if (const auto* text = std::get_if<std::string>(&value)) bytes += *text;
  bytes += '\n';
}

// Values of the columns that two programs with the same result agree in.
void append_columns(std::string& bytes, const Columns& columns,
                    std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : columns) {
    for (const std::string_view one : names) {
      if (name == one) append_value(bytes, value);
    }
  }
}

}  // namespace

void add_switching(Columns& columns, const SwitchModel& switching) {
  columns.emplace_back("switch_lead_s", switching.core.lead_s);
  columns.emplace_back("switch_stall_s", switching.core.stall_s);
  columns.emplace_back("switch_energy_j", switching.core.energy_j);
  columns.emplace_back("switch_dwell_s", switching.dwell_s);
  if (!switching.mem) return;
  columns.emplace_back("mem_switch_lead_s", switching.mem->lead_s);
  columns.emplace_back("mem_switch_stall_s", switching.mem->stall_s);
  columns.emplace_back("mem_switch_energy_j", switching.mem->energy_j);
}

void add_goal(Columns& columns, const Goal& goal) {
  columns.emplace_back("goal", name_of(goal));
  if (const auto* waste = std::get_if<LeastWaste>(&goal)) {
    columns.emplace_back("slack_pct", percent * waste->slack_frac);
    columns.emplace_back("tolerance_pct", percent * waste->tolerance_frac);
  } else if (const auto* time = std::get_if<LeastTime>(&goal)) {
    columns.emplace_back("energy_budget_j", sql_value(time->max_energy_j));
    columns.emplace_back("power_budget_w", sql_value(time->max_average_power_w));
  } else if (const auto* cost = std::get_if<LeastCost>(&goal)) {
    columns.emplace_back("price_per_kwh", cost->prices.per_kwh);
    columns.emplace_back("price_per_gpu_hour", cost->prices.per_gpu_hour);
    columns.emplace_back("pue", cost->prices.pue);
  }
}

void add_changes(Columns& columns, const StoredChanges& c) {
  const double later_pct = percent * (c.applied.time_s - c.planned.time_s) / c.defaults.time_s;
  const double dearer_pct =
      percent * (c.applied.energy_j - c.planned.energy_j) / c.defaults.energy_j;
  columns.emplace_back("time_s", c.planned.time_s);
  columns.emplace_back("energy_j", c.planned.energy_j);
  columns.emplace_back("time_change_pct", change_pct(c.planned.time_s, c.defaults.time_s));
  columns.emplace_back("energy_change_pct", change_pct(c.planned.energy_j, c.defaults.energy_j));
  columns.emplace_back("applied_time_s", c.applied.time_s);
  columns.emplace_back("applied_energy_j", c.applied.energy_j);
  columns.emplace_back("applied_time_change_pct", change_pct(c.applied.time_s, c.defaults.time_s));
  columns.emplace_back("applied_energy_change_pct",
                       change_pct(c.applied.energy_j, c.defaults.energy_j));
  if (c.time) {
    columns.emplace_back("time_change_low_pct", c.time->low_pct + later_pct);
    columns.emplace_back("time_change_high_pct", c.time->high_pct + later_pct);
    if (c.time->middle_pct)
      columns.emplace_back("time_change_expected_pct", *c.time->middle_pct + later_pct);
  }
  if (c.energy) {
    columns.emplace_back("energy_change_low_pct", c.energy->low_pct + dearer_pct);
    columns.emplace_back("energy_change_high_pct", c.energy->high_pct + dearer_pct);
    if (c.energy->middle_pct)
      columns.emplace_back("energy_change_expected_pct", *c.energy->middle_pct + dearer_pct);
  }
}

std::string hash_of(const RunRows& run) {
  std::string bytes;
  append_columns(bytes, run.columns, {"default_time_s", "default_energy_j"});
  for (const StoredClock& clock : run.clocks) {
    append_bits(bytes, clock.time_s.value_or(0.0));
    append_bits(bytes, clock.energy_j.value_or(0.0));
  }
  for (const StoredCells& cells : run.cells) bytes += cells.hash;
  return content_hash(bytes);
}

std::string hash_of(const PlanRows& plan) {
  std::string bytes;
  append_columns(bytes, plan.columns,
                 {"status", "objective", "lower_bound", "time_s", "energy_j", "applied_time_s",
                  "applied_energy_j"});
  bytes += fmt::format("{}\n", plan.contender.clock_changes);
  for (const PlanUnitRow& unit : plan.units)
    bytes += fmt::format("{} {} {}\n", unit.unit, unit.clock, unit.launches);
  for (const SegmentRow& segment : plan.segments)
    bytes += fmt::format("{} {} {}\n", segment.gpu, segment.clock, segment.launches);
  return content_hash(bytes);
}

StoredCells stored_cells(std::vector<OperatingPoint> at) {
  std::string bytes;
  bytes.reserve(at.size() * 4 * sizeof(double));
  for (const OperatingPoint& cell : at) {
    for (const double number :
         {cell.time_s, cell.energy_j, cell.core_mhz, cell.power_limited ? 1.0 : 0.0})
      append_bits(bytes, number);
  }
  return {std::move(at), content_hash(bytes)};
}

}  // namespace rubato
