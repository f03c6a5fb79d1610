// rubato export: one part of a run as CSV or JSON.

#include <array>
#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "explorer/results/plan_choice.hpp"
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
    Part{"plans", "SELECT * FROM v_plans WHERE run_id = {} ORDER BY plan_id"},
    Part{"clocks", "SELECT * FROM v_segments WHERE run_id = {} ORDER BY plan_id, segment_id"},
    Part{"kernels", "SELECT * FROM v_kernels WHERE run_id = {} ORDER BY plan_id, unit_id"},
    Part{"cells",
         "SELECT gpu_label, pass, name AS kernel, clock, time_s, energy_j, effective_core_mhz, "
         "power_limited FROM v_cells WHERE run_id = {} ORDER BY unit_id, clock_id"},
    Part{"passes",
         "SELECT pass, clock, time_s, energy_j, 100.0 * (time_s / sum(time_s) FILTER (WHERE "
         "is_default) OVER passes - 1) AS time_change_pct, 100.0 * (energy_j / sum(energy_j) "
         "FILTER (WHERE is_default) OVER passes - 1) AS energy_change_pct FROM v_pass_grid WHERE "
         "run_id = {} WINDOW passes AS (PARTITION BY pass) ORDER BY pass, clock_id"},
    Part{"front", "SELECT * FROM v_front WHERE run_id = {} ORDER BY granularity, point_id"},
    Part{"runs", "SELECT * FROM v_runs WHERE run_id = {}"},
    Part{"classes", "SELECT * FROM v_classes WHERE run_id = {} ORDER BY plan_id, class, pass"},
};

// ? is the experiment.
constexpr std::array experiment_parts{
    Part{"units",
         "SELECT * FROM v_experiment_plans WHERE experiment_id = ? ORDER BY scenario, "
         "question_hash"},
    Part{"classes",
         "SELECT * FROM v_classes WHERE plan_id IN (SELECT plan_id FROM v_experiment_plans WHERE "
         "experiment_id = ?) ORDER BY plan_id, class, pass"},
    Part{"sensitivity", "SELECT * FROM v_axes WHERE experiment_id = ? ORDER BY axis, value"},
    Part{"best",
         "SELECT * FROM v_experiment_plans WHERE experiment_id = ? AND is_answer ORDER BY run_id, "
         "goal, slack_pct"},
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
                 "plans, clocks, kernels, cells, passes, front, runs or classes; with "
                 "--experiment: units, classes, sensitivity or best")
      ->capture_default_str();
  app.add_option("--db", o->db, "Result database")->required();
  auto* run_option = app.add_option("--run", o->run, "Run, by its number [the latest]");
  auto* experiment_option =
      app.add_option("--experiment", o->experiment, "Experiment by name or id, or 'latest'")
          ->excludes(run_option);
  app.add_option(
         "--plan", o->plan.run,
         "Instead of a part, the plan that sets clocks (docs/apply.md) of a run: its number "
         "or 'latest'")
      ->excludes(run_option)
      ->excludes(experiment_option);
  app.add_option("--per", o->plan.granularity,
                 "Of --plan: the plan of that granularity [the answer of the run]");
  app.add_option("--goal", o->plan.goal,
                 "Of --plan: the answer to that goal, e.g. cost [the goal asked first]");
  app.add_option("--plan-id", o->plan.plan_id, "Of --plan: the plan with that id");
  app.add_option("--gpu", o->gpu,
                 "Of --plan: spec of a captured run planned with a file of your own");
  app.add_option("-o,--output", o->out, "File; - is standard output")->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "CSV unless --json or --json-lines is given or the file's name ends in .json or .jsonl.");
  return [o, &app](const RunContext&) {
    choose_format(*o, app);
    if (!o->plan.goal.empty()) o->plan.goal = goal_words({o->plan.goal}).front();
    if (!o->plan.run.empty()) return export_plan(*o);
    if (!o->plan.granularity.empty() || !o->plan.goal.empty() || o->plan.plan_id || !o->gpu.empty())
      throw UsageError("--per, --goal, --plan-id and --gpu choose a plan; give --plan too");
    if (!o->experiment.empty()) check_result_database(o->db);
    const ResultStore store = read_results(o->db);
    if (!o->experiment.empty()) {
      const Part& part = part_of(o->part == "plans" ? "units" : o->part, experiment_parts);
      const QueryResult rows = store.query(part.sql, {experiment_id(store, o->experiment)});
      write_output(o->out, as_table(rows).render(o->format));
      return ExitStatus::done;
    }
    const Part& part = part_of(o->part, parts);
    const std::int64_t run = find_stored_run(store, o->run.empty() ? "latest" : o->run).id;
    write_output(o->out,
                 as_table(store.query(fmt::format(fmt::runtime(part.sql), run))).render(o->format));
    return ExitStatus::done;
  };
}

}  // namespace rubato
