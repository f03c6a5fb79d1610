// rubato export: one part of a run as CSV or JSON.

#include <array>
#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "explorer/results/plan_file.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/options/questions.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

struct Part {
  const char* name;
  const char* sql;  ///< {} is the run
};

constexpr std::array parts{
    Part{"plans", "SELECT * FROM v_trace_plans WHERE run_id = {} ORDER BY plan_id"},
    Part{"clocks", "SELECT * FROM v_plan_clocks WHERE run_id = {} ORDER BY plan_id, site_id"},
    Part{
        "kernels",
        "SELECT * FROM v_kernels WHERE kind = 'trace' AND run_id = {} ORDER BY plan_id, kernel_id"},
    Part{"cells",
         "SELECT k.name AS kernel, c.label AS clock, x.time_s, x.energy_j, x.effective_core_mhz, "
         "x.power_limited "
         "FROM profile_cells x JOIN kernels k USING (run_id, kernel_id) JOIN clocks c USING "
         "(run_id, clock_id) "
         "WHERE x.run_id = {} ORDER BY x.kernel_id, x.clock_id"},
    Part{"passes",
         "SELECT g.pass, g.clock, g.time_s, g.energy_j, 100.0 * (g.time_s / b.time_s - 1) AS "
         "time_change_pct, "
         "100.0 * (g.energy_j / b.energy_j - 1) AS energy_change_pct FROM v_pass_grid g "
         "JOIN clocks d ON d.run_id = g.run_id AND d.is_default "
         "JOIN v_pass_grid b ON b.kind = g.kind AND b.run_id = g.run_id AND b.pass = g.pass AND "
         "b.clock_id = d.clock_id "
         "WHERE g.kind = 'trace' AND g.run_id = {} ORDER BY g.pass, g.clock_id"},
    Part{"front",
         "SELECT * FROM v_front WHERE kind = 'trace' AND run_id = {} ORDER BY granularity, "
         "point_id"},
    Part{"runs", "SELECT * FROM runs WHERE run_id = {}"},
    Part{"units", "SELECT * FROM v_units WHERE run_id = {} ORDER BY unit_id"},
    Part{"classes",
         "SELECT * FROM v_classes WHERE kind = 'trace' AND run_id = {} ORDER BY plan_id, class, "
         "pass"},
};

// ? is the experiment.
constexpr std::array experiment_parts{
    Part{"units",
         "SELECT * FROM v_experiment_units WHERE experiment_id = ? ORDER BY scenario, unit_id"},
    Part{"classes",
         "SELECT c.* FROM v_classes c WHERE c.kind = 'trace' AND c.plan_id IN (SELECT u.plan_id "
         "FROM "
         "experiment_units e JOIN units u USING (unit_id) WHERE e.experiment_id = ?) "
         "ORDER BY plan_id, class, pass"},
    Part{"sensitivity", "SELECT * FROM v_sensitivity WHERE experiment_id = ? ORDER BY axis, value"},
    Part{"best",
         "SELECT * FROM v_best_unit WHERE experiment_id = ? ORDER BY run_id, graph_run_id, goal, "
         "slack_pct"},
};

const Part& part_of(const std::string& name, std::span<const Part> list) {
  std::vector<std::string> known;
  for (const Part& part : list) {
    if (part.name == name) return part;
    known.emplace_back(part.name);
  }
  throw UsageError(fmt::format("there is no part '{}'{}", name, did_you_mean(name, known)));
}

struct ExportOptions {
  std::string db, part = "plans", experiment, out = "-", gpu, run;
  PlanFileRequest plan;
  OutputFormat format = OutputFormat::csv;
};

// The format is that of the file's name, unless an option says it.
void choose_format(ExportOptions& o, const CommandLine& line) {
  if (!o.plan.run.empty()) {
    refuse(line, {"PART", "--csv", "--json-lines"}, "does nothing with --plan");
    return check_extension("--output", o.out, {".json"});
  }
  if (line.has("--json") || line.has("--json-lines") || line.has("--csv")) return;
  check_extension("--output", o.out, {".csv", ".json", ".jsonl"});
  if (o.out.ends_with(".json")) o.format = OutputFormat::json;
  if (o.out.ends_with(".jsonl")) o.format = OutputFormat::json_lines;
}

// A run of a trace: captured runs have no parts.
std::int64_t run_of(const ResultStore& store, const std::string& name) {
  if (name.empty()) return latest_run(store);
  const auto number = parse_count(name.starts_with("run:") ? name.substr(4) : name);
  if (!number || *number > std::uint64_t{1} << 62U) {
    throw UsageError(fmt::format("--run is '{}'; expected a number or run:N", printable(name)),
                     {.in = {}, .hint = "'rubato query' reads what is stored of captured runs"});
  }
  require_run(store, static_cast<std::int64_t>(*number));
  return static_cast<std::int64_t>(*number);
}

ExitStatus export_plan(ExportOptions o) {
  const ResultStore store = read_results(o.db);
  if (!o.gpu.empty()) o.plan.spec = load_gpu_spec(o.gpu);
  write_plan_file(o.out, plan_file(store, o.plan));
  return ExitStatus::done;
}

}  // namespace

Action setup_export(CommandLine& app) {
  auto o = std::make_shared<ExportOptions>();
  app.add_option("PART", o->part,
                 "plans, clocks, kernels, cells, passes, front, runs, units or classes; with "
                 "--experiment: units, classes, sensitivity or best")
      ->capture_default_str();
  app.add_option("--db", o->db, "Result database")->required();
  auto* run_option = app.add_option("--run", o->run, "Run: its number or run:N [the latest]");
  auto* experiment_option =
      app.add_option("--experiment", o->experiment, "Experiment by name or id, or 'latest'")
          ->excludes(run_option);
  app.add_option(
         "--plan", o->plan.run,
         "Instead of a part, the plan that sets clocks (docs/apply.md) of a run: its number, "
         "'latest', or run:N and graph:N where a captured run has the same number")
      ->excludes(run_option)
      ->excludes(experiment_option);
  app.add_option("--granularity", o->plan.granularity,
                 "Of --plan: the plan of that granularity [the answer of the run]");
  app.add_option("--goal", o->plan.goal,
                 "Of --plan: the answer to that goal, e.g. cost [the goal asked first]");
  app.add_option("--plan-id", o->plan.plan_id, "Of --plan: the plan with that id");
  app.add_option("--gpu", o->gpu,
                 "Of --plan: spec of a captured run planned with a file of your own");
  app.add_option("-o,--output", o->out, "File; - is standard output")->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "\nCSV unless --json or --json-lines is given or the file's name ends in .json or "
      ".jsonl.\nExample:\n  rubato export cells --db "
      "results.db --run 1 "
      "--csv -o cells.csv\n  rubato export --plan latest --db results.db -o plan.json");
  return [o, &app](const RunContext&) {
    choose_format(*o, app);
    if (!o->plan.goal.empty()) o->plan.goal = goal_words({o->plan.goal}).front();
    if (!o->plan.run.empty()) return export_plan(*o);
    if (!o->plan.granularity.empty() || !o->plan.goal.empty() || o->plan.plan_id || !o->gpu.empty())
      throw UsageError("--granularity, --goal, --plan-id and --gpu choose a plan; give --plan too");
    if (!o->experiment.empty()) check_result_database(o->db);
    const ResultStore store = read_results(o->db);
    if (!o->experiment.empty()) {
      const Part& part = part_of(o->part == "plans" ? "units" : o->part, experiment_parts);
      const QueryResult rows = store.query(part.sql, {experiment_id(store, o->experiment)});
      write_output(o->out, as_table(rows).render(o->format));
      return ExitStatus::done;
    }
    const Part& part = part_of(o->part, parts);
    const std::int64_t run = run_of(store, o->run);
    write_output(o->out,
                 as_table(store.query(fmt::format(fmt::runtime(part.sql), run))).render(o->format));
    return ExitStatus::done;
  };
}

}  // namespace rubato
