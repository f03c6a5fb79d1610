// rubato impact: what a saving means for a training run.

#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/impact.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/drawing/answer.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

struct ImpactOptions {
  std::string file, db;
  std::int64_t plan = 0;
  bool print_template = false;
  OutputFormat format = OutputFormat::table;
};

double number(const SqlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

// A plan and the default clocks of its run.
struct ComparedPlan {
  IterationTotals planned, defaults;
  std::int64_t run_id = 0;
  std::string label;
};

// Of the latest run the plan that is exported, if it is one within a slack.
std::int64_t best_plan(const ResultStore& store) {
  const std::int64_t run = latest_run(store);
  const PlanCandidate best = choose_plans(store, {.id = run}, "", "", {}).plans.front();
  if (best.goal.ends_with("waste")) return best.id;
  throw UsageError(fmt::format("run {} has no plan within a slack", run),
                   {.in = {}, .hint = "name one with --plan"});
}

// With changes of clock counted where the plan took them to be free.
ComparedPlan load(const ResultStore& store, std::int64_t plan_id) {
  const QueryResult found = store.query(
      "SELECT coalesce(p.counted_time_s, p.time_s), coalesce(p.counted_energy_j, p.energy_j), "
      "b.time_s, b.energy_j, p.run_id, r.trace_name || ' on ' || "
      "r.gpu || ', plan ' || p.plan_id || ' per ' || p.granularity || ' (' || p.goal || "
      "CASE WHEN p.slack_frac > 0 THEN printf(', slack %g %%', 100 * p.slack_frac) ELSE '' END || "
      "CASE WHEN p.counted_time_s IS NOT NULL THEN '), changes of clock counted' ELSE ')' END "
      "FROM plans p "
      "JOIN plans b ON b.run_id = p.run_id AND b.goal = 'default' JOIN runs r ON r.run_id = "
      "p.run_id "
      "WHERE p.plan_id = ? AND p.energy_j IS NOT NULL",
      {plan_id});
  if (found.rows.empty())
    throw UsageError(fmt::format("there is no plan {} with clocks", plan_id),
                     {.in = {}, .hint = "'rubato show' lists the plans of a run"});
  const auto& row = found.rows.front();
  // The inputs say what hosts draw: they are not counted twice.
  const double host_power_w =
      stored_host_power_w(store, {.captured = false, .id = std::get<std::int64_t>(row[4])});
  const auto of_boards = [&](const SqlValue& time_s, const SqlValue& energy_j) -> IterationTotals {
    return {number(time_s), number(energy_j) - host_power_w * number(time_s)};
  };
  return {of_boards(row[0], row[1]), of_boards(row[2], row[3]), std::get<std::int64_t>(row[4]),
          std::get<std::string>(row[5])};
}

// "model=gpt3-xl batch=20 seq=1024 tp=2": the number after a word and "=".
std::optional<double> option_of(std::string_view options, std::string_view name) {
  for (const std::string_view word : split(options, ' ')) {
    const std::size_t sign = word.find('=');
    if (sign != std::string_view::npos && word.substr(0, sign) == name)
      return parse_number(word.substr(sign + 1));
  }
  return std::nullopt;
}

// What `trace gen` wrote into the trace of a run; nothing where it says less, or splits sequences
// or experts as well, so that a replica's GPUs are not its tensor-parallel degree.
std::optional<IterationWork> work_of_trace(const ResultStore& store, std::int64_t run_id) {
  const QueryResult found = store.query(
      "SELECT coalesce(json_extract(i.text, '$.provenance.options'), '') FROM runs r JOIN inputs i "
      "ON i.input_hash = r.trace_hash WHERE r.run_id = ?",
      {run_id});
  if (found.rows.empty()) return std::nullopt;
  const auto& options = std::get<std::string>(found.rows.front().front());
  const auto batch = option_of(options, "batch"), sequence = option_of(options, "seq"),
             tensor_parallel = option_of(options, "tp");
  const bool more =
      option_of(options, "cp").value_or(1.0) > 1.0 || option_of(options, "ep").value_or(1.0) > 1.0;
  if (!batch || !sequence || !tensor_parallel || more) return std::nullopt;
  return IterationWork{*batch * *sequence, *tensor_parallel};
}

// A generated trace knows its tokens and GPUs; of another they must be said.
IterationWork work_of(const ResultStore& store, const ImpactInputs& inputs, std::int64_t run_id,
                      const std::string& file) {
  const QueryResult shape = store.query(
      "SELECT batch * sequence, tensor_parallel * pipeline_parallel FROM settings "
      "WHERE run_id = ? AND batch IS NOT NULL",
      {run_id});
  const bool said = inputs.tokens_per_iteration || inputs.gpus_per_replica;
  if (!shape.rows.empty()) {
    if (said)
      throw DataError(
          fmt::format("{}: tokens_per_iteration and gpus_per_replica are for fixed traces; "
                      "run {} knows its own",
                      printable(file), run_id));
    return {number(shape.rows[0][0]), number(shape.rows[0][1])};
  }
  if (!said) {
    if (const auto known = work_of_trace(store, run_id)) return *known;
  }
  if (!inputs.tokens_per_iteration || !inputs.gpus_per_replica)
    throw DataError(
        fmt::format("{}: the trace of run {} does not say what it trains; expected "
                    "tokens_per_iteration and gpus_per_replica",
                    printable(file), run_id),
        {.in = {}, .hint = "tokens_per_iteration = {value = 40960, source = \"batch 40 x 1024\"}"});
  return {inputs.tokens_per_iteration->value, inputs.gpus_per_replica->value};
}

OutputTable impact_table(const Impact& defaults, const Impact& planned,
                         const ImpactInputs& inputs) {
  OutputTable table({{"quantity"},
                     {"unit"},
                     {"default", "default clocks", 1},
                     {"plan", "plan", 1},
                     {"change", "change", 1},
                     {"change_pct", "change %", 2}});
  const auto add = [&](const std::string& name, const std::string& unit, double before,
                       double after) {
    table.add_row({name, unit, before, after, after - before,
                   before > 0.0 ? Cell(change_pct(after, before)) : Cell()});
  };
  add("wall time", "h", defaults.wall_time_h, planned.wall_time_h);
  add("energy of the boards", "kWh", defaults.gpu_kwh, planned.gpu_kwh);
  if (inputs.host_w_per_gpu) add("energy of the hosts", "kWh", defaults.host_kwh, planned.host_kwh);
  add("energy of the building", "kWh", defaults.facility_kwh, planned.facility_kwh);
  add("cost", inputs.currency, defaults.cost, planned.cost);
  add("emissions", "kg CO2e", defaults.kg_co2e, planned.kg_co2e);
  return table;
}

Answer impact_answer(const Impact& defaults, const Impact& planned, const ImpactInputs& inputs) {
  const auto more = [](double change, const std::string& unit, int decimals) {
    return fmt::format("{} {} {}", format_fixed(std::abs(change), decimals), unit,
                       change > 0.0 ? "more" : "less");
  };
  Answer answer;
  answer.say("The training run takes ")
      .unbroken_lead(more(planned.facility_kwh - defaults.facility_kwh, "kWh", 0))
      .say(fmt::format(" ({}), {} and {}, in {} ({}).",
                       change_words(change_pct(planned.facility_kwh, defaults.facility_kwh)),
                       more(planned.cost - defaults.cost, inputs.currency, 2),
                       more(planned.kg_co2e - defaults.kg_co2e, "kg CO2e", 0),
                       more(planned.wall_time_h - defaults.wall_time_h, "hours", 1),
                       change_words(change_pct(planned.wall_time_h, defaults.wall_time_h))));
  return answer;
}

// What the numbers rest on, for people.
std::string impact_notes(const ResultStore& store, const ComparedPlan& plan, std::int64_t plan_id,
                         const ImpactInputs& inputs) {
  std::string text;
  if (!inputs.host_w_per_gpu)
    text += "Only the boards are counted: give host_w_per_gpu for the rest of the server.\n";
  for (const auto& row :
       store.query("SELECT kind, reason FROM plan_marks WHERE plan_id = ? ORDER BY kind", {plan_id})
           .rows)
    text += fmt::format("{}: {}.\n", std::get<std::string>(row[0]), std::get<std::string>(row[1]));
  for (const auto& row :
       store.query("SELECT measured_pct, anchored_pct FROM v_trust WHERE run_id = ?", {plan.run_id})
           .rows) {
    text += fmt::format(
        "Of the default time {:.0f} % is of measured kernels, {:.0f} % of captured ones; 'rubato "
        "gpus' says how far the models of GPUs are off.\n",
        number(row[0]), number(row[1]));
  }
  return text + "Every GPU is taken to draw what the simulated one draws.\n";
}

OutputTable inputs_table(const ImpactInputs& inputs) {
  OutputTable table({{"input"}, {"value"}, {"source"}});
  for (const SourcedNumber& number : inputs.given())
    table.add_row({number.key, format_number(number.value), number.source});
  return table;
}

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
  const ResultStore store = ResultStore::open_read_only(o.db);
  const std::int64_t plan_id = o.plan > 0 ? o.plan : best_plan(store);
  const ComparedPlan plan = load(store, plan_id);
  const IterationWork work = work_of(store, inputs, plan.run_id, o.file);
  const Impact defaults = impact(inputs, work, plan.defaults),
               planned = impact(inputs, work, plan.planned);
  const OutputTable totals = impact_table(defaults, planned, inputs);
  const OutputTable sources = inputs_table(inputs);
  const OutputTable trust = as_table(store.query(
      "SELECT 'default time in measured kernels, %' AS model, 100.0 * sum((k.coefficients = "
      "'measured') * pk.time_s) / b.time_s AS value FROM plans b JOIN plan_kernels pk USING "
      "(plan_id) "
      "JOIN kernels k ON k.run_id = b.run_id AND k.kernel_id = pk.kernel_id WHERE b.run_id = ?1 "
      "AND "
      "b.goal = 'default' UNION ALL SELECT e.name, e.value FROM runs r JOIN model_errors e USING "
      "(spec_hash) WHERE r.run_id = ?1",
      {plan.run_id}));
  if (o.format == OutputFormat::json) {
    print(render_json_object({{"impact", &totals}, {"inputs", &sources}, {"model", &trust}}));
    return ExitStatus::done;
  }
  if (o.format != OutputFormat::table) {
    print(totals, o.format);
    return ExitStatus::done;
  }
  print_notes(answer_text(printable(plan.label), impact_answer(defaults, planned, inputs)));
  print_tables({{"impact", &totals}, {"inputs", &sources}}, o.format);
  print_notes(impact_notes(store, plan, plan_id, inputs));
  return ExitStatus::done;
}

}  // namespace

Action setup_impact(CommandLine& app) {
  auto o = std::make_shared<ImpactOptions>();
  app.add_option("INPUTS", o->file, "File of inputs (TOML), each with its source");
  app.add_option("--db", o->db, "Result database");
  app.add_option(
      "--plan", o->plan,
      "plan_id [of the latest run the plan that saves most in the least slack as it is played]");
  app.add_flag("--template", o->print_template, "Print a file of inputs to fill in");
  add_format_options(app, o->format);
  app.footer(
      "\nEvery GPU of the run is taken to draw what the simulated one draws. Changes of clock are "
      "counted.\n"
      "Example:\n  rubato impact --template > run.toml\n  rubato impact run.toml --db results.db "
      "--plan 10");
  return [o](const RunContext&) { return run(*o); };
}

}  // namespace rubato
