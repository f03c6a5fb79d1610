#include "explorer/results/replay_store.hpp"

#include "common/version.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

namespace {

std::optional<double> energy_of(const std::optional<SpanEnergy>& span) {
  return span ? std::optional(span->energy_j) : std::nullopt;
}
std::optional<double> coverage_of(const std::optional<SpanEnergy>& span) {
  return span ? std::optional(span->coverage) : std::nullopt;
}

void store_rows(const SqlConnection& connection, std::int64_t id, const char* grouped_by,
                const std::vector<ReplayRow>& rows) {
  SqlStatement insert(connection,
                      "INSERT INTO replay_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                      "?, ?, ?)");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ReplayRow& row = rows[i];
    std::optional<double> error, half_width;
    if (row.time_error) {
      error = row.time_error->value;
      half_width = row.time_error->half_width;
    }
    // The table has four verdicts. Collectives wait, which says nothing of the model.
    Verdict verdict = verdict_of(row);
    if (verdict == Verdict::waits) verdict = Verdict::not_predicted;
    SqlValue source;
    if (row.source) source = std::string(name_of(*row.source));
    insert.run(id, grouped_by, i, row.name, name_of(row.kind), source, row.launches, row.captured_s,
               row.compared_s, row.predicted_s, row.replayed_s, error, half_width, name_of(verdict),
               row.predicted_power_w, row.measured_power_w, row.measured_sigma_w);
  }
}

}  // namespace

std::int64_t store_replay(const std::filesystem::path& path, const ReplayRequest& request,
                          const CaptureReplay& replay, const ReplayComparison& comparison,
                          const std::optional<PowerEvidence>& power) {
  SqlConnection connection = open_result_database(path);
  SqlTransaction transaction(connection);
  const ReplayTotals& t = comparison.totals;
  const ReplayCoverage& c = comparison.coverage;
  SqlValue power_file;
  std::optional<double> shift_s, correlation;
  if (power) {
    power_file = power->log->file;
    shift_s = power->alignment.shift_s;
    correlation = power->alignment.correlation;
  }
  SqlStatement(connection,
               "INSERT INTO replays VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
               "?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(now_utc(), request.command, program_version(), request.trace_file, replay.capture().name,
           replay.spec().name, request.captured_clock, request.replayed_clock, power_file, shift_s,
           correlation, t.captured_s, t.reproduced_s, t.predicted_s, t.replayed_s, t.reproduced_j,
           t.predicted_j, t.replayed_j, energy_of(comparison.measured),
           coverage_of(comparison.measured), c.measured_s, c.derived_s, c.guessed_s, c.anchored_s,
           c.scaled_s);
  const std::int64_t id = connection.last_insert_id();
  store_rows(connection, id, "kernel", comparison.kernels);
  store_rows(connection, id, "class", comparison.classes);
  SqlStatement insert(connection,
                      "INSERT INTO replay_steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < comparison.steps.size(); ++i) {
    const ReplayStep& step = comparison.steps[i];
    insert.run(id, i, step.name, step.launches, step.captured_s, step.predicted_s, step.replayed_s,
               step.predicted_j, step.replayed_j, energy_of(step.measured),
               coverage_of(step.measured));
  }
  transaction.commit();
  return id;
}

}  // namespace rubato
