#include "tools/commands/plans/transfer_table.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

// Columns with their cells.
using Row = std::vector<std::pair<Column, Cell>>;

Row row_of(const TransferredPlan& plan, const Transfer& t) {
  const auto cell = [](std::optional<double> value) { return value ? Cell(*value) : Cell(); };
  const auto less = [](std::optional<double> saving) { return saving ? Cell(-*saving) : Cell(); };
  Row row;
  const auto add = [&](Column column, Cell value) { row.emplace_back(std::move(column), value); };
  const std::string run = plan.captured ? "captures" : "trace";
  add({.key = run, .whole = !plan.captured}, t.run);
  add({.key = "plan_id", .for_programs = true}, plan.id);
  add({.key = "plan_" + run, .for_programs = true}, plan.found_on);
  if (!plan.captured) {
    add({"power_w", "default W", 0, false, Room::spare}, power_w(t.baseline));
    add({"limited_pct", "at limit %", 1, false, Room::spare}, percent * t.limited_frac);
  }
  add({"known_pct", "known time %", 1, false, Room::detail}, percent * t.known_frac);
  add({"time_change_pct", "time %", 2}, t.time_pct());
  add({"energy_change_pct", "energy %", 2}, less(t.saving_pct()));
  if (t.interval) {
    const auto& [time, energy] = *t.interval;
    add({"time_change_low_pct", "low", 2, true}, time.low_pct);
    add({"time_change_high_pct", "high", 2, true}, time.high_pct);
    add({"time_change_expected_pct", "expected", 2, true}, time.median_pct);
    add({.key = "energy_change_low_pct", .for_programs = true}, energy.low_pct);
    add({.key = "energy_change_high_pct", .for_programs = true}, energy.high_pct);
    add({.key = "energy_range", .title = "90 %", .for_people = true, .whole = true},
        range_cell(energy.low_pct, energy.high_pct));
    add({"energy_change_expected_pct", "expected", 2, false, Room::detail}, energy.median_pct);
  }
  if (t.deadline_s) {
    const auto changes = static_cast<std::int64_t>(t.clock_changes);
    add({"clock_changes", "changes", 0, false, Room::detail}, changes);
    add({.key = "deadline", .room = Room::needed}, t.in_time() ? "kept" : "missed");
  }
  add({"own_time_change_pct", "own time %", 2, false, Room::detail}, cell(t.own_time_pct()));
  add({"own_energy_change_pct", "own energy %", 2}, less(t.own_saving_pct()));
  add({"regret_points", "regret", 2}, cell(t.regret_points()));
  if (!plan.captured) {
    add({"equal_time_regret_points", "at equal time", 2, false, Room::detail},
        cell(t.equal_time_regret_points()));
  }
  return row;
}

}  // namespace

TransferredPlan name_of(const StoredPlan& plan) {
  const bool given = plan.plan_id == 0;
  return {
      .plan = given ? "the given plan" : fmt::format("plan {}", plan.plan_id),
      .question = fmt::format("{}, {}, {}", name_of(plan.question.granularity),
                              name_of(plan.question.aggregation), name_of(plan.question.goal)),
      .found_on = plan.trace,
      .gpu = fmt::format("{}, {} W", printable(plan.spec.title), format_number(plan.power_limit_w)),
      .id = given ? Cell() : Cell(plan.plan_id)};
}

TransferredPlan name_of(const StoredGraphPlan& plan) {
  return {
      .plan = fmt::format("plan {}", plan.plan_id),
      .question = fmt::format("{}, in at most {} % more time", name_of(plan.question.granularity),
                              format_number(percent * *allowed_frac(plan.question))),
      .found_on = plan.captures,
      .gpu = printable(plan.gpu),
      .id = plan.plan_id,
      .captured = true};
}

std::string plan_words(const TransferredPlan& plan) {
  return fmt::format("{} ({})", plan.plan, plan.question);
}

std::string found_words(const TransferredPlan& plan) {
  return fmt::format("{}, found on {}", plan_words(plan),
                     printable(plan.captured ? files_text(plan.found_on) : plan.found_on));
}

OutputTable transfer_table(const TransferredPlan& plan, std::span<const DrawnTransfer> runs) {
  std::vector<Column> columns;
  for (auto& [column, cell] : row_of(plan, runs.front().transfer))
    columns.push_back(std::move(column));
  OutputTable table(std::move(columns));
  for (const DrawnTransfer& run : runs) {
    std::vector<Cell> cells;
    for (auto& [column, cell] : row_of(plan, run.transfer)) cells.push_back(std::move(cell));
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace rubato
