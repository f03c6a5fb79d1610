#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/report/page.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/report/setting_lines.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

// The lines that set each of the single clocks `singles`, by clock.
nlohmann::ordered_json single_clock_lines(const QueryResult& singles, const GpuSpec& spec) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::object();
  for (const auto& row : singles.rows) {
    const auto& label = value_as<std::string>(row.front());
    try {
      const SettingCommands commands = setting_commands(spec, parse_clock_pair(spec, label));
      lines[label] = {commands.set, commands.back};
    } catch (const UsageError&) {
      continue;  // the spec has changed since and lacks this clock
    }
  }
  return lines;
}

}  // namespace

std::string captured_page(const ResultStore& store, std::int64_t run_id, std::string_view db) {
  const auto rows = [&](std::string_view sql) {
    return rows_as_objects(store.query(sql, {run_id}));
  };
  const std::optional<GpuSpec> spec = stored_spec(store, run_id);
  const QueryResult unbeaten = store.query(
      "SELECT clock FROM v_clocks c WHERE run_id = ?1 AND time_s NOT NULL AND NOT EXISTS (SELECT 1 "
      "FROM v_clocks d WHERE d.run_id = ?1 AND d.time_s <= c.time_s AND d.energy_j < c.energy_j)",
      {run_id});
  return filled_page(
      "Rubato: GPUs of a run", {"what_to_set", "captured"}, "captured_script",
      {{"run", rows("SELECT * FROM v_runs WHERE run_id = ?").front()},
       {"play", play_commands(store.query("SELECT plan_id FROM v_plans WHERE run_id = ?", {run_id}),
                              fmt::format("{}", run_id), db)},
       {"lines", spec ? single_clock_lines(unbeaten, *spec) : nlohmann::ordered_json::object()},
       {"errors", spec ? spec->fit_errors : std::map<std::string, double>{}},
       {"plans", rows("SELECT *, caveats AS notes, 100.0 * (lower_bound_j / default_energy_j - 1) "
                      "AS bound_change_pct FROM v_plans WHERE run_id = ? ORDER BY plan_id")},
       {"answers",
        rows("SELECT * FROM v_answer WHERE run_id = ? ORDER BY NOT is_headline, slack_pct")},
       {"notes", rows("SELECT kind, reason FROM v_caveats WHERE run_id = ? ORDER BY plan_id")},
       {"verifications", rows("SELECT * FROM v_verified WHERE run_id = ? ORDER BY measurement_id")},
       {"singles", rows("SELECT clock, is_default, time_s, energy_j FROM v_clocks WHERE run_id = ? "
                        "AND time_s NOT NULL ORDER BY time_s")},
       {"front", rows("SELECT time_s, bound_j FROM v_front WHERE run_id = ? AND bound_j NOT NULL "
                      "ORDER BY point_id")},
       // All GPUs together: launches of a kernel in a pass, by clock.
       {"kernels",
        rows_as_table(store.query(
            "SELECT plan_id, pass, name AS kernel, clock, sum(launches) AS launches, "
            "sum(time_s) AS time_s, sum(energy_j) AS energy_j FROM v_kernel_clocks WHERE run_id = "
            "? GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
            {run_id}))},
       {"collectives", rows("SELECT name, collective, ranks, last_rank, start_skew_s, transfer_s, "
                            "end_spread_s FROM v_collectives WHERE run_id = ? ORDER BY "
                            "collective_id")}});
}

}  // namespace rubato
