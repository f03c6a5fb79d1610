#include "explorer/report/run_report.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "explorer/published.hpp"
#include "explorer/report/page.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/plan_choice.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

struct PageTable {
  std::string_view name;
  std::string_view sql;  ///< ?1 is the run or the experiment
};

// Named as `rubato explore --json` names them, where it has them.
constexpr std::array run_tables{
    PageTable{"run", "SELECT * FROM v_runs WHERE run_id = ?1"},
    PageTable{"answers",
              "SELECT * FROM v_answer WHERE run_id = ?1 ORDER BY NOT is_headline, slack_pct"},
    PageTable{
        "plans",
        "SELECT plan_id, granularity, aggregation, goal, slack_pct, status, time_s, energy_j, "
        "clocks, clock, (SELECT set_to FROM v_answer a WHERE a.plan_id = p.plan_id) AS set_to, "
        "time_change_pct, time_change_low_pct, time_change_high_pct, energy_change_pct, "
        "energy_change_low_pct, energy_change_high_pct, odds_pct, odds_in_time_pct, in_time, "
        "100.0 * (lower_bound_j / default_energy_j - 1) AS bound_change_pct, gap_pct, power_w AS "
        "average_power_w, clock_changes AS clock_switches, clock_changes_per_s AS "
        "clock_switches_per_s, caveats AS notes FROM v_plans p WHERE run_id = ?1 ORDER BY plan_id"},
    PageTable{"notes",
              "SELECT plan_id, kind AS note, reason FROM v_caveats WHERE run_id = ?1 ORDER BY "
              "plan_id, kind"},
    // By GPU and pass: of each the clock, or how many.
    PageTable{"passes",
              "SELECT k.plan_id, k.gpu_label, k.pass, c.clock, sum(k.launches) AS launches, "
              "sum(k.default_time_s) AS default_time_s, sum(k.time_s) AS time_s, 100.0 * "
              "(sum(k.time_s) / sum(k.default_time_s) - 1) AS time_change_pct, "
              "sum(k.default_energy_j) AS default_energy_j, sum(k.energy_j) AS energy_j, 100.0 * "
              "(sum(k.energy_j) / sum(k.default_energy_j) - 1) AS energy_change_pct FROM v_kernels "
              "k JOIN (SELECT plan_id, gpu_label, pass, CASE WHEN min(clock) = max(clock) THEN "
              "min(clock) WHEN count(DISTINCT mem_mhz) = 1 AND min(core_mhz) NOT NULL THEN "
              "printf('%g to %g MHz', min(core_mhz), max(core_mhz)) ELSE count(DISTINCT clock) || "
              "' clocks' END AS clock FROM v_kernel_clocks WHERE run_id = ?1 GROUP BY 1, 2, 3) c "
              "USING (plan_id, gpu_label, pass) WHERE k.run_id = ?1 GROUP BY 1, 2, 3 ORDER BY 1, "
              "min(k.unit_id)"},
    PageTable{
        "kernels",
        "SELECT plan_id, gpu_label, name AS kernel, label, class, pass, source, launches, "
        "ifnull(clock, clocks || ' clocks') AS clock, default_time_s, time_s, time_change_pct, "
        "default_energy_j, energy_j, energy_change_pct, saved_j, time_share_pct, energy_share_pct "
        "FROM v_kernels WHERE run_id = ?1 ORDER BY plan_id, unit_id"},
    // For the slider: a launch of each kernel at every clock. Captures are planned with what runs
    // beside them, which launches alone do not say.
    PageTable{"cells",
              "SELECT name AS kernel, pass, launches, clock, time_s, energy_j FROM v_cells WHERE "
              "run_id = ?1 AND kind = 'trace' ORDER BY unit_id, clock_id"},
    PageTable{"clocks",
              "SELECT clock, core_mhz, is_default, time_s, energy_j, time_change_pct, "
              "energy_change_pct FROM v_clocks WHERE run_id = ?1 AND kind <> 'trace' AND time_s "
              "NOT NULL ORDER BY time_s"},
    PageTable{"front",
              "SELECT granularity, time_s, energy_j, bound_j, time_change_pct, energy_change_pct, "
              "bound_change_pct FROM v_front WHERE run_id = ?1 ORDER BY granularity, point_id"},
    PageTable{
        "segments",
        "SELECT plan_id, gpu_label, pass, microbatch, clock, block, repeats, start_s, "
        "time_s, energy_j, critical FROM v_segments WHERE run_id = ?1 ORDER BY is_headline DESC, "
        "plan_id, segment_id LIMIT 20000"},
    PageTable{"verifications",
              "SELECT * FROM v_verified WHERE run_id = ?1 ORDER BY measurement_id"},
    PageTable{"errors", "SELECT name, value FROM v_model_errors WHERE run_id = ?1 ORDER BY name"},
    PageTable{"collectives",
              "SELECT name, collective, ranks, last_rank, start_skew_s, transfer_s, end_spread_s "
              "FROM v_collectives WHERE run_id = ?1 ORDER BY collective_id"}};

constexpr std::array experiment_tables{
    PageTable{"experiment", "SELECT * FROM v_experiments WHERE experiment_id = ?1"},
    PageTable{
        "units",
        "SELECT scenario, run_id, plan_id, gpu, work AS trace_name, captured_clock, model, batch, "
        "sequence, tensor_parallel, data_parallel, stages, microbatches, schedule, power_limit_w, "
        "host_power_w, clock_grid, switch_stall_us, switch_energy_j, switch_latency_us, "
        "switch_dwell_us, seed, granularity, aggregation, goal, slack_pct, tolerance_pct, "
        "odds_pct, program_version, status, time_s, energy_j, in_time, is_answer, "
        "time_change_pct, energy_change_pct, energy_change_low_pct, energy_change_high_pct, "
        "clock_changes, applied_gap_pct AS gap_pct, caveats AS notes, gpu_calibrated, "
        "measured_pct, guessed_pct, guessed_split_pct FROM v_experiment_plans WHERE "
        "experiment_id = ?1 ORDER BY run_id, plan_id, scenario"},
    // Captured runs have the front of their single clocks, as granularity run. Enough points for a
    // line on a screen; a front of many kernels has hundreds.
    PageTable{
        "fronts",
        "WITH r AS (SELECT DISTINCT run_id FROM v_experiment_plans WHERE experiment_id = ?1), p AS "
        "(SELECT run_id, granularity, f.time_change_pct, f.energy_change_pct FROM r JOIN v_front f "
        "USING (run_id) WHERE f.energy_j NOT NULL UNION ALL SELECT run_id, 'run', "
        "c.time_change_pct, c.energy_change_pct FROM r JOIN v_clocks c USING (run_id) WHERE c.kind "
        "= 'capture' AND NOT EXISTS (SELECT 1 FROM v_clocks d WHERE d.run_id = c.run_id AND "
        "d.time_s <= c.time_s AND d.energy_j < c.energy_j)), n AS (SELECT *, row_number() OVER w "
        "AS i, count(*) OVER (PARTITION BY run_id, granularity) AS n FROM p WHERE time_change_pct "
        "<= 100 WINDOW w AS (PARTITION BY run_id, granularity ORDER BY time_change_pct)) SELECT "
        "run_id, granularity, time_change_pct, energy_change_pct FROM n WHERE i = 1 OR i * 32 / n "
        "> (i - 1) * 32 / n ORDER BY run_id, granularity, i"},
    // Under the answer of the settings that save most, or where none is under the plan that saves
    // most.
    PageTable{
        "kernels",
        "SELECT k.run_id, k.plan_id, k.name AS kernel, k.class, k.pass, k.energy_change_pct, "
        "k.time_change_pct, k.energy_share_pct FROM (SELECT run_id, plan_id FROM (SELECT run_id, "
        "plan_id, energy_change_pct, row_number() OVER (PARTITION BY run_id ORDER BY is_answer "
        "DESC, energy_j, plan_id) AS rank FROM v_experiment_plans WHERE experiment_id = ?1 AND "
        "kind = 'trace' AND energy_j NOT NULL) WHERE rank = 1 ORDER BY energy_change_pct, run_id "
        "LIMIT 40) best JOIN v_kernels k ON k.plan_id = best.plan_id ORDER BY k.run_id, k.unit_id"},
    PageTable{"errors",
              "SELECT DISTINCT gpu, name, value FROM v_model_errors WHERE run_id IN (SELECT run_id "
              "FROM v_experiment_plans WHERE experiment_id = ?1) ORDER BY 1, 2"}};

constexpr std::array index_tables{
    PageTable{"runs",
              "SELECT r.run_id, r.created_utc, r.kind, r.work, r.gpu, r.power_limit_w, "
              "a.slack_pct, a.granularity, a.set_to, a.energy_change_pct, a.time_change_pct, "
              "a.odds_in_time_pct FROM v_runs r LEFT JOIN v_answer a ON a.run_id = r.run_id AND "
              "a.is_headline WHERE r.asked = ?1 ORDER BY r.run_id DESC"},
    PageTable{"experiments",
              "SELECT experiment_id, name, first_run_utc, finished_units, planned_units FROM "
              "v_experiments WHERE ?1 ORDER BY first_run_utc DESC"}};

// With the SQL of each, as one types it.
Json tables_json(const ResultStore& store, std::span<const PageTable> tables, const SqlValue& key) {
  const auto* text = std::get_if<std::string>(&key);
  const std::string typed =
      text != nullptr ? fmt::format("'{}'", *text) : fmt::format("{}", value_as<std::int64_t>(key));
  Json all = Json::object();
  for (const PageTable& table : tables) {
    std::string sql(table.sql);
    for (std::size_t at = 0; (at = sql.find("?1", at)) != std::string::npos; at += typed.size())
      sql.replace(at, 2, typed);
    Json made = rows_as_table(store.query(table.sql, {key}));
    made["sql"] = std::move(sql);
    all[std::string(table.name)] = std::move(made);
  }
  return all;
}

// The published results belong only beside this trace on this GPU under this power limit.
Json published_json(const Json& run) {
  Json rows = Json::array();
  constexpr double limit_w = 350.0;
  if (run["work"] == "gpt3-xl-b40-s1024-tp1-dp1" && run["gpu"] == "rtx-3080-ti" &&
      run["power_limit_w"] == limit_w) {
    for (const PublishedTotal& row : published_table2())
      rows.push_back({name_of(row.granularity), name_of(row.aggregation), row.goal,
                      row.time_change_pct, row.energy_change_pct});
  }
  return {
      {"columns", {"granularity", "aggregation", "goal", "time_change_pct", "energy_change_pct"}},
      {"rows", std::move(rows)}};
}

// The lines that set each single clock, by clock.
Json setting_lines_json(const ResultStore& store, std::int64_t run, const GpuSpec& spec) {
  Json lines = Json::object();
  for (const auto& row : store.query("SELECT clock FROM v_clocks WHERE run_id = ?", {run}).rows) {
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

// The command line that plans like a run, made from its stored options; the page adds what shares a
// clock and slack. Empty where the options are not those of a trace on a GPU.
std::string planning_line(const Json& run) {
  if (run["kind"] != "trace" || run["options_json"].is_null()) return "";
  Json options = Json::parse(run["options_json"].get<std::string>());
  if (!options.contains("WORK") || options.contains("table")) return "";
  if (!options.contains("gpu") && !options.contains("cluster")) options["gpu"] = run["gpu"];
  std::string line =
      fmt::format("rubato explore {}", shell_word(options["WORK"].get<std::string>()));
  for (const char* name : {"gpu", "cluster", "captured-clock", "power", "clocks", "power-limit",
                           "power-limits", "host-power", "switching"}) {
    if (options.contains(name))
      line += fmt::format(" --{} {}", name, shell_word(options[name].get<std::string>()));
  }
  return line;
}

// The five, and notes.
Json lines_json(const ResultStore& store, std::int64_t run) {
  Json lines = rows_as_objects(store.query(
      "SELECT planned, \"set\", saves, rests_on, next FROM v_lines WHERE run_id = ?", {run}))[0];
  lines["notes"] = Json::array();
  for (const auto& row :
       store
           .query("SELECT text FROM screens WHERE run_id = ? AND label = 'note' ORDER BY position",
                  {run})
           .rows)
    lines["notes"].push_back(value_as<std::string>(row[0]));
  return lines;
}

// "run.pt.trace.json.gz and 3 more"
std::string work_name(const Json& run) {
  const std::vector<std::string_view> files =
      split(run["work"].get_ref<const std::string&>(), '\n');
  std::string_view first = files.front();
  first.remove_prefix(first.find_last_of('/') + 1);
  return files.size() > 1 ? fmt::format("{} and {} more", first, files.size() - 1)
                          : std::string(first);
}

}  // namespace

std::string run_page(const ResultStore& store, std::int64_t run_id, std::string_view db) {
  Json tables = tables_json(store, run_tables, run_id);
  const Json run = rows_as_objects(store.query(run_tables[0].sql, {run_id}))[0];
  tables["published"] = published_json(run);
  const std::optional<GpuSpec> spec = stored_spec(store, run_id);
  const std::string name = work_name(run);
  Json play = Json::object();
  for (const auto& row :
       store.query("SELECT plan_id FROM v_plans WHERE run_id = ?", {run_id}).rows) {
    const auto plan = value_as<std::int64_t>(row[0]);
    play[fmt::format("{}", plan)] = play_command(fmt::format("{}", run_id), plan, db);
  }
  const std::string kind = run["kind"];
  return filled_page({{"schema", 1},
                      {"kind", "run"},
                      {"title", spec ? fmt::format("{} on {}", name, spec->name) : name},
                      {"subtitle", fmt::format("{}: {}{}",
                                               kind == "trace"     ? "Trace"
                                               : kind == "capture" ? "Captured run"
                                                                   : "Pipeline",
                                               name, spec ? ", " + spec->title : "")},
                      {"gpu_title", spec ? spec->title : ""},
                      {"answer", lines_json(store, run_id)},
                      {"planning_line", planning_line(run)},
                      {"play", std::move(play)},
                      {"lines", spec ? setting_lines_json(store, run_id, *spec) : Json::object()},
                      {"tables", std::move(tables)}});
}

std::string index_page(const ResultStore& store, std::string_view db) {
  constexpr std::int64_t asked = 1;
  return filled_page({{"schema", 1},
                      {"kind", "index"},
                      {"title", db.substr(db.find_last_of('/') + 1)},
                      {"subtitle", "Result database"},
                      {"tables", tables_json(store, index_tables, asked)}});
}

std::string experiment_page(const ResultStore& store, const std::string& experiment_id) {
  const Json experiment =
      rows_as_objects(store.query(experiment_tables[0].sql, {experiment_id}))[0];
  const std::optional<std::int64_t> best = best_unit(store, {.experiment_id = experiment_id});
  Json answer{
      {"planned",
       fmt::format("{} of {} units of experiment {}", experiment["finished_units"].dump(),
                   experiment["planned_units"].dump(), experiment["name"].get<std::string>())},
      {"set", "nothing yet: no plan is in time and can be set on a GPU as it is"}};
  if (best) {
    const auto run = value_as<std::int64_t>(
        store.query("SELECT run_id FROM v_plans WHERE plan_id = ?", {*best}).rows[0][0]);
    const Json lines = lines_json(store, run);
    answer["planned"] = fmt::format("{}. Best: {}", answer["planned"].get<std::string>(),
                                    lines["planned"].get<std::string>());
    for (const char* line : {"set", "saves", "rests_on"}) answer[line] = lines[line];
    answer["next"] =
        fmt::format("run {} alone: rubato report --run {}, with the same --db", run, run);
  }
  return filled_page(
      {{"schema", 1},
       {"kind", "experiment"},
       {"title", experiment["name"]},
       {"subtitle", ""},
       {"answer", std::move(answer)},
       {"best", best ? Json(*best) : Json(nullptr)},
       {"file", rows_as_objects(store.query("SELECT text FROM experiments WHERE experiment_id = ?",
                                            {experiment_id}))[0]["text"]},
       {"tables", tables_json(store, experiment_tables, experiment_id)}});
}

}  // namespace rubato
