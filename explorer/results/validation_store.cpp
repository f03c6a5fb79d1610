#include "explorer/results/validation_store.hpp"

#include "common/numbers.hpp"
#include "common/version.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

namespace {

// What a validation was, and its points. @return its validation_id
std::int64_t add_validation(SqlConnection& connection, const GpuSpec& spec, const Sweep& sweep,
                            const ValidationOptions& options, const std::string& model,
                            std::span<const ValidatedPoint> points, const std::string& command) {
  SqlStatement(connection, "INSERT INTO validations VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(now_utc(), command, program_version(), spec.name, sweep.file, name_of(options.holdout),
           options.points, options.folds, model);
  const std::int64_t id = connection.last_insert_id();
  SqlStatement row(connection,
                   "INSERT INTO validation_points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ValidatedPoint& p = points[i];
    row.run(id, i, p.kernel, spec.mem_states[index(p.measured.clock.mem)].name,
            p.measured.clock.core_mhz, p.measured.power_cap_w, p.measured.time_s,
            p.measured.power_w, p.predicted.time_s, p.predicted.energy_j / p.predicted.time_s,
            p.predicted.power_limited);
  }
  return id;
}

}  // namespace

std::int64_t store_validation(const std::filesystem::path& path, const GpuSpec& spec,
                              const Sweep& sweep, const ValidationOptions& options,
                              std::span<const ValidatedPoint> points, const std::string& command) {
  SqlConnection connection = open_result_database(path);
  SqlTransaction transaction(connection);
  const std::int64_t id =
      add_validation(connection, spec, sweep, options, "builtin", points, command);
  transaction.commit();
  return id;
}

std::int64_t store_compared_model(const std::filesystem::path& path, const GpuSpec& spec,
                                  const Sweep& sweep, const ComparisonOptions& options,
                                  const ComparedModel& model, std::span<const RegretRow> regrets,
                                  const std::string& command) {
  SqlConnection connection = open_result_database(path);
  SqlTransaction transaction(connection);
  const ValidationOptions held_out{
      .holdout = options.leave_kernels_out ? Holdout::kernels : Holdout::few_points,
      .points = options.points,
      .folds = options.groups};
  const std::int64_t id =
      add_validation(connection, spec, sweep, held_out, model.name, model.held_out, command);
  SqlStatement row(connection,
                   "INSERT INTO validation_regrets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const RegretRow& r : regrets) {
    row.run(id, name_of(r.steps), percent * r.slack_frac, r.plans, r.late, r.mean.time_pct,
            r.mean.late_pct, r.worst_late_pct, r.mean.promised_energy_pct, r.mean.energy_pct,
            r.mean.best_energy_pct, r.mean.regret_pct, r.worst_regret_pct);
  }
  transaction.commit();
  return id;
}

}  // namespace rubato
