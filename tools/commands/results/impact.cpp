// rubato impact: what a saving means for a training run.

#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/impact.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/results/impact_plan.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

struct ImpactOptions {
  std::string file, db, plan;
  bool print_template = false;
  OutputFormat format = OutputFormat::table;
};

std::optional<Interval> interval_of(const StoredChange& change) {
  if (!change.low || !change.high) return std::nullopt;
  return Interval{.low_pct = percent * *change.low,
                  .median_pct = percent * change.value,
                  .high_pct = percent * *change.high};
}

// What the training run takes, and where the intervals of its iteration end.
struct ComparedImpact {
  Impact defaults, planned;
  std::optional<Interval> time;    ///< of the wall time
  std::optional<Interval> boards;  ///< of their energy
  std::optional<Interval> total;   ///< of the building, its cost and its emissions
};

ComparedImpact compare(const ImpactInputs& inputs, const IterationWork& work,
                       const ComparedPlan& plan) {
  ComparedImpact found{.defaults = impact(inputs, work, plan.defaults),
                       .planned = impact(inputs, work, plan.planned),
                       .time = interval_of(plan.time_change),
                       .boards = interval_of(plan.energy_change),
                       .total = {}};
  if (!found.boards) return found;
  const auto total_pct = [&](double boards_pct) {
    const double energy_j = (1.0 + boards_pct / percent) * plan.defaults.energy_j;
    return change_pct(impact(inputs, work, {plan.planned.time_s, energy_j}).facility_kwh,
                      found.defaults.facility_kwh);
  };
  found.total = Interval{.low_pct = total_pct(found.boards->low_pct),
                         .median_pct = total_pct(found.boards->median_pct),
                         .high_pct = total_pct(found.boards->high_pct)};
  return found;
}

OutputTable impact_table(const ComparedImpact& found, const ImpactInputs& inputs) {
  OutputTable table({{"quantity"},
                     {"unit"},
                     {"default", "default clocks", 1},
                     {"plan", "plan", 1},
                     {"change", "change", 1},
                     {"change_pct", "change %", 2},
                     {.key = "change_low_pct", .for_programs = true},
                     {.key = "change_high_pct", .for_programs = true},
                     {.key = "change_range", .title = "90 %", .for_people = true, .whole = true}});
  const auto add = [&](const std::string& name, const std::string& unit, double Impact::*of,
                       const std::optional<Interval>& interval) {
    const double before = found.defaults.*of, after = found.planned.*of;
    const bool some = before > 0.0, range = some && interval;
    table.add_row(
        {name, unit, before, after, after - before, some ? Cell(change_pct(after, before)) : Cell(),
         range ? Cell(interval->low_pct) : Cell(), range ? Cell(interval->high_pct) : Cell(),
         range ? range_cell(interval->low_pct, interval->high_pct) : Cell()});
  };
  add("wall time", "h", &Impact::wall_time_h, found.time);
  add("energy of the boards", "kWh", &Impact::gpu_kwh, found.boards);
  if (inputs.host_w_per_gpu) add("energy of the hosts", "kWh", &Impact::host_kwh, found.time);
  add("energy of the building", "kWh", &Impact::facility_kwh, found.total);
  add("cost", inputs.currency, &Impact::cost, found.total);
  add("emissions", "kg CO2e", &Impact::kg_co2e, found.total);
  return table;
}

std::string impact_answer(const ComparedImpact& found, const ImpactInputs& inputs) {
  const Impact &defaults = found.defaults, &planned = found.planned;
  const auto more = [](double change, const std::string& unit, int decimals) {
    return fmt::format("{} {} {}", format_fixed(std::abs(change), decimals), unit,
                       change > 0.0 ? "more" : "less");
  };
  constexpr double shown_h = 0.05;  // half of the last digit
  const double time_h = planned.wall_time_h - defaults.wall_time_h;
  std::string answer;
  answer.append("The training run takes ")
      .append(more(planned.facility_kwh - defaults.facility_kwh, "kWh", 0))
      .append(fmt::format(
          ": {}. That is {} and {}, in {}: {}.",
          change_words(change_pct(planned.facility_kwh, defaults.facility_kwh), found.total),
          more(planned.cost - defaults.cost, inputs.currency, 2),
          more(planned.kg_co2e - defaults.kg_co2e, "kg CO2e", 0),
          std::abs(time_h) < shown_h ? "about the same time" : more(time_h, "hours", 1),
          change_words(change_pct(planned.wall_time_h, defaults.wall_time_h), found.time)));
  return answer;
}

// Shares of the time: at the default clocks of a trace, as captured of a captured run.
std::string known_kernels_note(const ResultStore& store, const StoredRun& run) {
  const QueryResult shares = store.query(
      "SELECT measured_pct, anchored_pct, guessed_split_pct FROM v_trust WHERE run_id = ? AND "
      "measured_pct NOT NULL",
      {run.id});
  if (shares.rows.empty()) return {};
  const auto& row = shares.rows.front();
  return fmt::format(
      "Of the {} time {:.0f} % is of measured kernels, {:.0f} % of captured ones{}; 'rubato gpus' "
      "says how far the models of GPUs are off.\n",
      run.captured() ? "captured" : "default", real(row[0]), real(row[1]),
      real(row[2]) > 0.0 ? fmt::format(" ({:.0f} % with a guessed split)", real(row[2])) : "");
}

// What the numbers rest on, for people.
std::string impact_notes(const ResultStore& store, const ComparedPlan& plan,
                         const ImpactInputs& inputs) {
  std::string text;
  if (!inputs.host_w_per_gpu)
    text += "Only the boards are counted: give host_w_per_gpu for the rest of the server.\n";
  const QueryResult marks =
      store.query("SELECT kind, reason FROM v_caveats WHERE plan_id = ? ORDER BY kind", {plan.id});
  for (const auto& row : marks.rows)
    text += fmt::format("{}: {}.\n", rubato::text(row[0]), rubato::text(row[1]));
  text += known_kernels_note(store, plan.run);
  if (plan.run.captured()) {
    text += fmt::format(
        "What was captured is taken as {:.0f} iteration{}, and every GPU of the run to draw what "
        "the captured ones draw in the mean.\n",
        plan.iterations, plan.iterations == 1.0 ? "" : "s");
  } else if (plan.run.kind == "pipeline") {
    text += "Every GPU of the run is taken to draw what the stages draw in the mean.\n";
  } else {
    text += "Every GPU is taken to draw what the simulated one draws.\n";
  }
  return text;
}

OutputTable inputs_table(const ImpactInputs& inputs) {
  OutputTable table({{"input"}, {"value"}, {"source"}});
  for (const SourcedNumber& number : inputs.given())
    table.add_row({number.key, format_number(number.value), number.source});
  return table;
}

// What the numbers rest on, for programs: shares of measured kernels, errors of the model.
constexpr const char* trust_sql =
    "SELECT CASE kind WHEN 'capture' THEN 'captured' ELSE 'default' END || ' time in measured "
    "kernels, %' AS model, measured_pct AS value FROM v_trust WHERE run_id = ?1 AND measured_pct "
    "NOT NULL UNION ALL SELECT name, value FROM v_model_errors WHERE run_id = ?1";

ExitStatus run(const ImpactOptions& o) {
  if (o.print_template) {
    print(impact_template());
    return ExitStatus::done;
  }
  if (o.file.empty() || o.db.empty())
    throw UsageError(
        "INPUTS and --db are needed",
        {.in = {}, .hint = "'rubato impact --template' writes a file of inputs to fill in"});
  const ImpactInputs inputs = parse_impact_inputs(read_file(o.file), o.file);
  const ResultStore store = read_results(o.db);
  const ComparedPlan plan = compared_plan(store, o.plan);
  const ComparedImpact found = compare(inputs, work_of(store, inputs, plan, o.file), plan);
  const OutputTable totals = impact_table(found, inputs);
  const OutputTable sources = inputs_table(inputs);
  const OutputTable trust = as_table(store.query(trust_sql, {plan.run.id}));
  if (o.format == OutputFormat::json) {
    print(render_json_object({{"impact", &totals}, {"inputs", &sources}, {"model", &trust}}));
    return ExitStatus::done;
  }
  if (o.format != OutputFormat::table) {
    print(totals, o.format);
    return ExitStatus::done;
  }
  print_notes(answer_text(printable(plan.label), impact_answer(found, inputs)));
  print_tables({{"impact", &totals}, {"inputs", &sources}}, o.format);
  print_notes(impact_notes(store, plan, inputs));
  return ExitStatus::done;
}

}  // namespace

Action setup_impact(CommandLine& app) {
  auto o = std::make_shared<ImpactOptions>();
  app.add_option("INPUTS", o->file, "File of inputs (TOML), each with its source");
  app.add_option("--db", o->db, "Result database");
  app.add_option("--plan", o->plan, "Plan, by its plan_id [the answer of the latest run]");
  app.add_flag("--template", o->print_template, "Print a file of inputs to fill in");
  add_format_options(app, o->format);
  app.footer(
      "Every GPU of the run is taken to draw what the simulated one draws; of captured runs and "
      "pipelines, what their GPUs draw in the mean. Switches are counted. 90 %: energies "
      "at the plan's own time. Captured runs and pipelines do not know what they train: give "
      "tokens_per_iteration and gpus_per_replica.");
  return [o](const RunContext&) { return run(*o); };
}

}  // namespace rubato
