#include "explorer/results/validation_store.hpp"

#include "common/version.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

std::int64_t store_validation(const std::filesystem::path& path, const GpuSpec& spec,
                              const Sweep& sweep, const ValidationOptions& options,
                              std::span<const ValidatedPoint> points, const std::string& command) {
  SqlConnection connection = open_result_database(path);
  SqlTransaction transaction(connection);
  SqlStatement(connection, "INSERT INTO validations VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(now_utc(), command, program_version(), spec.name, sweep.file, name_of(options.holdout),
           options.points, options.folds);
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
  transaction.commit();
  return id;
}

}  // namespace rubato
