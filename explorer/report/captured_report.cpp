#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/report/page.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/report/setting_lines.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

// Whether a command named the shipped spec `gpu`, or none, which leaves it to the captured devices.
bool names_shipped(const std::string& command, const std::string& gpu) {
  std::string words = command + ' ';
  std::ranges::replace(words, '=', ' ');
  const std::size_t at = words.find(" --gpu ");
  return at == std::string::npos || words.find(" --gpu " + gpu + ' ') == at;
}

// The spec of a run. A sweep stores it. Else it is the shipped spec of that name, if the command
// says so and the default clocks are those of the run; nothing if not.
std::optional<GpuSpec> spec_of_run(const ResultStore& store, std::int64_t graph_run,
                                   const nlohmann::ordered_json& run) {
  const auto kept = store.query(
      "SELECT i.text, i.name FROM graph_settings s JOIN inputs i ON i.input_hash = s.spec_hash "
      "WHERE s.graph_run_id = ?",
      {graph_run});
  if (!kept.rows.empty())
    return parse_gpu_spec(value_as<std::string>(kept.rows.front()[0]),
                          value_as<std::string>(kept.rows.front()[1]));
  const auto gpu = run["gpu"].get<std::string>(), command = run["command"].get<std::string>();
  const std::vector<std::string> shipped = shipped_gpu_specs();
  if (std::ranges::find(shipped, gpu) == shipped.end() || !command.starts_with("rubato explore ") ||
      !names_shipped(command, gpu))
    return std::nullopt;
  GpuSpec spec = load_gpu_spec(gpu);
  const ClockGrid defaults(spec, {spec.default_clock});
  const auto same =
      store.query("SELECT 1 FROM graph_clocks WHERE graph_run_id = ? AND is_default AND clock = ?",
                  {graph_run, defaults.label(defaults.default_clock())});
  return same.rows.empty() ? std::nullopt : std::optional(std::move(spec));
}

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

std::string captured_page(const ResultStore& store, std::int64_t graph_run, std::string_view db) {
  const auto rows = [&](std::string_view sql) {
    return rows_as_objects(store.query(sql, {graph_run}));
  };
  const nlohmann::ordered_json run =
      rows("SELECT * FROM graph_runs WHERE graph_run_id = ?").front();
  const std::optional<GpuSpec> spec = spec_of_run(store, graph_run, run);
  const QueryResult unbeaten = store.query(
      "SELECT clock FROM graph_clocks c WHERE graph_run_id = ?1 AND NOT EXISTS (SELECT 1 FROM "
      "graph_clocks d WHERE d.graph_run_id = ?1 AND d.time_s <= c.time_s AND d.energy_j < "
      "c.energy_j)",
      {graph_run});
  return filled_page(
      "Rubato: captured run", {"what_to_set", "captured"}, "captured_script",
      {{"run", run},
       {"play",
        play_commands(store.query("SELECT graph_plan_id FROM graph_plans WHERE graph_run_id = ?",
                                  {graph_run}),
                      fmt::format("graph:{}", graph_run), db)},
       {"lines", spec ? single_clock_lines(unbeaten, *spec) : nlohmann::ordered_json::object()},
       {"errors", spec ? spec->fit_errors : std::map<std::string, double>{}},
       {"plans", rows("SELECT * FROM v_graph_plans WHERE graph_run_id = ? ORDER BY graph_plan_id")},
       {"answers", rows("SELECT * FROM v_answer WHERE kind = 'capture' AND run_id = ? ORDER BY "
                        "NOT is_headline, slack_pct")},
       {"notes", rows("SELECT kind, reason FROM graph_run_marks WHERE graph_run_id = ?1 UNION ALL "
                      "SELECT m.kind, m.reason FROM graph_plans p JOIN graph_plan_marks m USING "
                      "(graph_plan_id) WHERE p.graph_run_id = ?1")},
       {"verifications",
        rows("SELECT * FROM v_verifications WHERE graph_run_id = ? ORDER BY verification_id")},
       {"singles", rows("SELECT clock, is_default, time_s, energy_j FROM graph_clocks WHERE "
                        "graph_run_id = ? ORDER BY time_s")},
       {"front", rows("SELECT time_s, bound_j FROM graph_front WHERE graph_run_id = ? ORDER BY "
                      "point_id")},
       // All GPUs together: launches of a kernel in a pass, by clock.
       {"kernels",
        rows_as_table(store.query(
            "SELECT c.graph_plan_id, c.pass, c.kernel, c.clock, sum(c.launches) AS launches, "
            "sum(c.time_s) AS time_s, sum(c.energy_j) AS energy_j FROM graph_plan_clocks c JOIN "
            "graph_plans p USING (graph_plan_id) WHERE p.graph_run_id = ? GROUP BY 1, 2, 3, 4 "
            "ORDER BY 1, 2, 3, 4",
            {graph_run}))},
       {"collectives",
        rows("SELECT name, collective, ranks, last_rank, start_skew_s, transfer_s, end_spread_s "
             "FROM graph_collectives WHERE graph_run_id = ? ORDER BY row_id")}});
}

}  // namespace rubato
