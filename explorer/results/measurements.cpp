#include "explorer/results/measurements.hpp"

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "common/version.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/run_writer.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

namespace {

/// Columns of table measurements, and of its rows.
struct MeasurementRows {
  Columns columns;
  std::vector<Columns> rows;
};

void append_all(std::string& text, const Columns& columns) {
  for (const auto& [name, value] : columns) {
    text += name;
    if (const auto* number = std::get_if<double>(&value)) text += format_number(*number);
    if (const auto* count = std::get_if<std::int64_t>(&value)) text += std::to_string(*count);
    if (const auto* word = std::get_if<std::string>(&value)) text += *word;
    text += '\n';
  }
}

std::int64_t store_measurement(const std::filesystem::path& path, std::string_view kind,
                               const std::string& command, MeasurementRows measured) {
  measured.columns.insert(measured.columns.end(),
                          {{"kind", std::string(kind)},
                           {"created_utc", now_utc()},
                           {"command", command},
                           {"program_version", std::string(program_version())}});
  std::string text;
  append_all(text, measured.columns);
  for (const Columns& row : measured.rows) append_all(text, row);
  measured.columns.emplace_back("measurement_hash", content_hash(text));
  SqlConnection connection = open_result_database(path);
  SqlTransaction transaction(connection);
  const std::int64_t id = insert_row(connection, "measurements", measured.columns);
  for (Columns& row : measured.rows) {
    row.emplace_back("measurement_id", id);
    insert_row(connection, "measurement_rows", row);
  }
  transaction.commit();
  return id;
}

SqlValue energy_of(const std::optional<SpanEnergy>& span) {
  return span ? SqlValue(span->energy_j) : SqlValue();
}
SqlValue coverage_of(const std::optional<SpanEnergy>& span) {
  return span ? SqlValue(span->coverage) : SqlValue();
}

Columns replay_row(std::string_view part, std::size_t i, const ReplayRow& row) {
  // The table has four verdicts. Collectives wait, which says nothing of the model.
  Verdict verdict = verdict_of(row);
  if (verdict == Verdict::waits) verdict = Verdict::not_predicted;
  Columns columns{{"part", std::string(part)},
                  {"row_id", sql_value(i)},
                  {"name", row.name},
                  {"class", std::string(name_of(row.kind))},
                  {"launches", sql_value(row.launches)},
                  {"measured_time_s", row.captured_s},
                  {"compared_time_s", row.compared_s},
                  {"predicted_time_s", row.predicted_s},
                  {"other_time_s", row.replayed_s},
                  {"predicted_power_w", row.predicted_power_w},
                  {"measured_power_w", sql_value(row.measured_power_w)},
                  {"measured_power_sigma_w", sql_value(row.measured_sigma_w)},
                  {"verdict", std::string(name_of(verdict))}};
  if (row.source) columns.emplace_back("source", std::string(name_of(*row.source)));
  if (row.time_error) {
    columns.emplace_back("time_error_pct", percent * row.time_error->value);
    if (row.time_error->half_width)
      columns.emplace_back("time_error_half_width_pct", percent * *row.time_error->half_width);
  }
  return columns;
}

void add_change(Columns& columns, const ChangeRange& change, std::string_view value,
                std::string_view low, std::string_view high) {
  columns.emplace_back(value, percent * change.value);
  columns.emplace_back(low, percent * change.low);
  columns.emplace_back(high, percent * change.high);
}

}  // namespace

std::int64_t store_replay(const std::filesystem::path& path, const ReplayRequest& request,
                          const CaptureReplay& replay, const ReplayComparison& comparison,
                          const std::optional<PowerEvidence>& power) {
  const ReplayTotals& t = comparison.totals;
  MeasurementRows rows;
  rows.columns = {{"measured_file", request.trace_file},
                  {"work", replay.capture().name},
                  {"gpu", replay.spec().name},
                  {"clock", request.captured_clock},
                  {"other_clock", request.replayed_clock},
                  {"measured_time_s", t.captured_s},
                  {"predicted_time_s", t.predicted_s},
                  {"reproduced_time_s", t.reproduced_s},
                  {"other_time_s", t.replayed_s},
                  {"measured_energy_j", energy_of(comparison.measured)},
                  {"predicted_energy_j", t.predicted_j},
                  {"reproduced_energy_j", t.reproduced_j},
                  {"other_energy_j", t.replayed_j},
                  {"measured_coverage", coverage_of(comparison.measured)}};
  if (power) {
    rows.columns.emplace_back("compared_file", power->log->file);
    rows.columns.emplace_back("power_shift_s", power->alignment.shift_s);
    rows.columns.emplace_back("power_correlation", sql_value(power->alignment.correlation));
  }
  for (std::size_t i = 0; i < comparison.kernels.size(); ++i)
    rows.rows.push_back(replay_row("kernel", i, comparison.kernels[i]));
  for (std::size_t i = 0; i < comparison.classes.size(); ++i)
    rows.rows.push_back(replay_row("class", i, comparison.classes[i]));
  for (std::size_t i = 0; i < comparison.steps.size(); ++i) {
    const ReplayStep& step = comparison.steps[i];
    rows.rows.push_back({{"part", std::string("step")},
                         {"row_id", sql_value(i)},
                         {"name", step.name},
                         {"launches", sql_value(step.launches)},
                         {"measured_time_s", step.captured_s},
                         {"predicted_time_s", step.predicted_s},
                         {"other_time_s", step.replayed_s},
                         {"measured_energy_j", energy_of(step.measured)},
                         {"predicted_energy_j", step.predicted_j},
                         {"other_energy_j", step.replayed_j},
                         {"measured_coverage", coverage_of(step.measured)}});
  }
  return store_measurement(path, "replay", request.command, std::move(rows));
}

std::int64_t store_validation(const std::filesystem::path& path, const GpuSpec& spec,
                              const Sweep& sweep, const ValidationOptions& options,
                              std::span<const ValidatedPoint> points, const std::string& command) {
  MeasurementRows rows;
  rows.columns = {{"measured_file", sweep.file},
                  {"gpu", spec.name},
                  {"holdout", std::string(name_of(options.holdout))},
                  {"points_per_kernel", sql_value(options.points)},
                  {"folds", sql_value(options.folds)}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ValidatedPoint& p = points[i];
    const ClockPair& clock = p.measured.clock;
    const std::string& memory = spec.mem_states[index(clock.mem)].name;
    rows.rows.push_back(
        {{"part", std::string("point")},
         {"row_id", sql_value(i)},
         {"name", p.kernel},
         {"clock",
          fmt::format("{}/{}", memory, clock.core_mhz ? format_number(*clock.core_mhz) : "auto")},
         {"power_cap_w", sql_value(p.measured.power_cap_w)},
         {"measured_time_s", sql_value(p.measured.time_s)},
         {"measured_power_w", sql_value(p.measured.power_w)},
         {"predicted_time_s", p.predicted.time_s},
         {"predicted_power_w", p.predicted.energy_j / p.predicted.time_s},
         {"power_limited", std::int64_t{p.predicted.power_limited}}});
  }
  return store_measurement(path, "validate", command, std::move(rows));
}

std::int64_t store_verification(const std::filesystem::path& path, const Verification& found,
                                const std::string& command) {
  MeasurementRows rows;
  rows.columns = {{"measured_file", found.measured_path},
                  {"compared_file", found.plan_path},
                  {"work", found.source},
                  {"gpu", found.gpu},
                  {"granularity", found.granularity},
                  {"plan_time_s", found.plan_time_s},
                  {"plan_energy_j", found.plan_energy_j},
                  {"pairs", sql_value(found.pairs)},
                  {"energy_verdict", std::string(name_of(found.energy))},
                  {"time_verdict", std::string(name_of(found.time))}};
  add_change(rows.columns, found.promised_energy, "promised_energy_change_pct",
             "promised_energy_change_low_pct", "promised_energy_change_high_pct");
  add_change(rows.columns, found.measured_energy, "measured_energy_change_pct",
             "measured_energy_change_low_pct", "measured_energy_change_high_pct");
  add_change(rows.columns, found.promised_time, "promised_time_change_pct",
             "promised_time_change_low_pct", "promised_time_change_high_pct");
  add_change(rows.columns, found.measured_time, "measured_time_change_pct",
             "measured_time_change_low_pct", "measured_time_change_high_pct");
  return store_measurement(path, "verify", command, std::move(rows));
}

}  // namespace rubato
