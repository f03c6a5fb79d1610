#include "tools/commands/captures/replay_tables.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

Cell pct(double now, double before) {
  return before > 0.0 ? Cell(100.0 * (now / before - 1.0)) : Cell();
}
Cell optional_cell(const std::optional<double>& value, double scale = 1.0) {
  return value ? Cell(scale * *value) : Cell();
}
Cell energy_cell(const std::optional<SpanEnergy>& span) {
  return span ? Cell(span->energy_j) : Cell();
}

// A time, for programs in ms, for people in the unit that suits it.
std::array<Column, 2> time_columns(const std::string& key, const std::string& title, bool hidden) {
  return {Column{.key = key + "_ms", .for_programs = true},
          Column{.key = key, .title = title, .for_programs = hidden, .for_people = true}};
}
void add_time(std::vector<Cell>& row, const std::optional<double>& time_s) {
  row.push_back(optional_cell(time_s, ms_per_s));
  row.push_back(time_s ? Cell(time_text(*time_s)) : Cell());
}

}  // namespace

OutputTable runs_table(const ReplayRequest& request, const ReplayComparison& comparison) {
  const TimeUnit unit = time_unit(comparison.totals.captured_s);
  OutputTable table(
      {{"run"},
       {"clock"},
       {.key = "time_ms", .for_programs = true},
       {.key = "time", .title = fmt::format("time {}", unit.name), .for_people = true},
       {"error_pct", "over captured %", 2},
       {"energy_j", "energy J"}});
  const ReplayTotals& t = comparison.totals;
  const auto add = [&](const char* name, const std::string& clock, double time_s, Cell energy) {
    table.add_row({std::string(name), clock, 1e3 * time_s, unit.per_s * time_s,
                   pct(time_s, t.captured_s), energy});
  };
  add("captured", request.captured_clock, t.captured_s, energy_cell(comparison.measured));
  add("reproduced", request.captured_clock, t.reproduced_s, t.reproduced_j);
  add("predicted", request.captured_clock, t.predicted_s, t.predicted_j);
  add("replayed", request.replayed_clock, t.replayed_s, t.replayed_j);
  return table;
}

OutputTable rows_table(const std::vector<ReplayRow>& rows, const char* what, const Shown& shown) {
  const auto captured = time_columns("captured", "captured", false),
             predicted = time_columns("predicted", "model", false),
             replayed = time_columns("replayed", "replayed", !shown.replayed);
  OutputTable table({{what},
                     {"source", {}, 3, true},
                     {"launches", {}, 3, shown.replayed && shown.power},
                     captured[0],
                     captured[1],
                     {.key = "compared_ms", .for_programs = true},
                     predicted[0],
                     predicted[1],
                     {"error_pct", "error %", 1},
                     {"error_90_pct", "+-90 %", 1},
                     {.key = "verdict", .room = Room::needed},
                     replayed[0],
                     replayed[1],
                     {"predicted_w", "model W", 0, !shown.power},
                     {"measured_w", "log W", 0, !shown.power},
                     {"measured_sigma_w", "+-1 s", 0, !shown.power}});
  for (const ReplayRow& row : rows) {
    const auto& error = row.time_error;
    std::vector<Cell> cells{row.name, row.source ? Cell(std::string(name_of(*row.source))) : Cell(),
                            static_cast<std::int64_t>(row.launches)};
    add_time(cells, row.captured_s);
    cells.emplace_back(ms_per_s * row.compared_s);
    add_time(cells, error ? std::optional(row.predicted_s) : std::nullopt);
    cells.insert(cells.end(), {error ? Cell(percent * error->value) : Cell(),
                               error ? optional_cell(error->half_width, percent) : Cell(),
                               std::string(name_of(verdict_of(row)))});
    add_time(cells, row.replayed_s);
    cells.insert(cells.end(), {row.predicted_power_w, optional_cell(row.measured_power_w),
                               optional_cell(row.measured_sigma_w)});
    table.add_row(std::move(cells));
  }
  return table;
}

OutputTable steps_table(const std::vector<ReplayStep>& steps, const Shown& shown) {
  const auto captured = time_columns("captured", "captured", false),
             predicted = time_columns("predicted", "model", false),
             replayed = time_columns("replayed", "replayed", !shown.replayed);
  OutputTable table({{"step"},
                     {"launches", {}, 3, shown.replayed && shown.power},
                     captured[0],
                     captured[1],
                     predicted[0],
                     predicted[1],
                     {"error_pct", "error %", 2},
                     replayed[0],
                     replayed[1],
                     {"predicted_j", "model J"},
                     {"replayed_j", "replayed J", 3, !shown.replayed},
                     {"measured_j", "log J", 3, !shown.power},
                     {"energy_error_pct", "error %", 2, !shown.power},
                     {"measured_coverage", "log covers", 2, !shown.power || shown.replayed}});
  for (const ReplayStep& step : steps) {
    const auto& measured = step.measured;
    std::vector<Cell> cells{step.name, static_cast<std::int64_t>(step.launches)};
    add_time(cells, step.captured_s);
    add_time(cells, step.predicted_s);
    cells.push_back(pct(step.predicted_s, step.captured_s));
    add_time(cells, step.replayed_s);
    cells.insert(cells.end(), {step.predicted_j, step.replayed_j, energy_cell(measured),
                               measured ? pct(step.predicted_j, measured->energy_j) : Cell(),
                               measured ? Cell(measured->coverage) : Cell()});
    table.add_row(std::move(cells));
  }
  return table;
}

OutputTable coverage_table(const ReplayCoverage& coverage) {
  OutputTable table({{"known_from"}, {"time_ms"}, {"share_pct"}});
  const auto add = [&](const char* name, double s) {
    table.add_row({std::string(name), 1e3 * s, 100.0 * s / std::max(coverage.total_s(), 1e-12)});
  };
  add("measured", coverage.measured_s);
  add("scaled", coverage.scaled_s);
  add("derived", coverage.derived_s);
  add("guessed", coverage.guessed_s);
  add("anchored", coverage.anchored_s);
  return table;
}

OutputTable alignment_table(const PowerEvidence& power) {
  OutputTable table({{"file"},
                     {"format"},
                     {"zone_hours"},
                     {"shift_s"},
                     {"correlation"},
                     {"samples"},
                     {"window_s"}});
  const Alignment& a = power.alignment;
  table.add_row({power.log->file, std::string(name_of(power.log->kind)),
                 a.zone_quarter_hours ? Cell(*a.zone_quarter_hours / 4.0) : Cell(), a.shift_s,
                 optional_cell(a.correlation), static_cast<std::int64_t>(a.samples),
                 power.sensor.window_s});
  return table;
}

}  // namespace rubato
