// rubato transfer: a plan found on one trace, applied to others.

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/given_plan.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/transfer.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/plans/transfer_captured.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/transfer.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/prices.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/stored_runs.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/file_patterns.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

struct TransferOptions {
  std::string db, model = "gpt3-xl", collectives = "model", clocks, page, plot, plan;
  CapturedRunOptions captured;
  StepOptions step;
  std::vector<std::string> ranks;
  std::vector<std::string> traces;
  std::vector<std::uint64_t> batches, tensor_parallel;
  std::optional<double> host_power_w;
  OutputFormat format = OutputFormat::table;
};

// A trace to apply the plan to, and its place in the picture.
struct Target {
  Trace trace;
  std::string panel;
  double batch = 0.0;
};

// The traces named, and every combination of batch and tensor-parallel degree.
std::vector<Target> targets_of(const TransferOptions& o) {
  std::vector<Target> targets;
  for (const std::string& name : o.traces)
    targets.push_back({load_trace(name), "traces named", 0.0});
  if (o.batches.empty() && o.tensor_parallel.empty()) return targets;
  TrainingStep shape = gpt_preset(o.model);
  shape.collectives = o.collectives == "model";
  for (const std::uint64_t tp :
       o.tensor_parallel.empty() ? std::vector{shape.tensor_parallel} : o.tensor_parallel) {
    for (const std::uint64_t batch : o.batches.empty() ? std::vector{shape.batch} : o.batches) {
      shape.batch = batch;
      shape.tensor_parallel = tp;
      targets.push_back({generate_training_step(shape).trace, fmt::format("{}, TP {}", o.model, tp),
                         static_cast<double>(batch)});
    }
  }
  return targets;
}

// "plan 9 (kernel, global, strict_waste), found on gpt3-xl".
std::string describe(const StoredPlan& plan) {
  const std::string which =
      plan.plan_id == 0 ? "the given plan" : fmt::format("plan {}", plan.plan_id);
  return fmt::format("{} ({}, {}, {}), found on {}", which, name_of(plan.question.granularity),
                     name_of(plan.question.aggregation), name_of(plan.question.goal),
                     printable(plan.trace));
}

// Without rows; the columns are those of row_of.
OutputTable transfer_table() {
  return OutputTable({{.key = "trace", .whole = true},
                      {.key = "plan_id", .for_programs = true},
                      {.key = "plan_trace", .for_programs = true},
                      {"power_w", "default W", 0, false, Room::spare},
                      {"limited_pct", "at limit %", 1, false, Room::spare},
                      {"known_pct", "known time %", 1, false, Room::detail},
                      {"time_change_pct", "time %", 2},
                      {"energy_change_pct", "energy %", 2},
                      {"time_change_low_pct", "low", 2, true},
                      {"time_change_high_pct", "high", 2, true},
                      {"time_change_expected_pct", "expected", 2, true},
                      {.key = "energy_change_low_pct", .for_programs = true},
                      {.key = "energy_change_high_pct", .for_programs = true},
                      {.key = "energy_range", .title = "90 %", .for_people = true, .whole = true},
                      {"energy_change_expected_pct", "expected", 2, false, Room::detail},
                      {"own_time_change_pct", "own time %", 2, false, Room::detail},
                      {"own_energy_change_pct", "own energy %", 2},
                      {"regret_points", "regret", 2},
                      {"equal_time_regret_points", "at equal time", 2, false, Room::detail}});
}

std::vector<Cell> row_of(const StoredPlan& plan, const Transfer& t) {
  const auto own = [&](double value) { return t.own_found ? Cell(value) : Cell(std::monostate{}); };
  return {t.trace,
          plan.plan_id == 0 ? Cell() : Cell(plan.plan_id),
          plan.trace,
          t.baseline.average_power_w(),
          100.0 * t.limited_frac,
          100.0 * t.known_frac,
          change_pct(t.transferred.time_s, t.baseline.time_s),
          change_pct(t.transferred.energy_j, t.baseline.energy_j),
          t.interval.time.low_pct,
          t.interval.time.high_pct,
          t.interval.time.median_pct,
          t.interval.energy.low_pct,
          t.interval.energy.high_pct,
          range_cell(t.interval.energy.low_pct, t.interval.energy.high_pct),
          t.interval.energy.median_pct,
          own(change_pct(t.own.time_s, t.baseline.time_s)),
          own(change_pct(t.own.energy_j, t.baseline.energy_j)),
          own(100.0 * t.regret_frac()),
          t.own_in_time_found ? Cell(100.0 * t.equal_time_regret_frac()) : Cell(std::monostate{})};
}

void write_pictures(const TransferOptions& o, const StoredPlan& plan,
                    const std::vector<DrawnTransfer>& drawn) {
  const TransferCaption caption{
      .plan =
          fmt::format("{} ({}, {}, {})",
                      plan.plan_id == 0 ? "The given plan" : fmt::format("Plan {}", plan.plan_id),
                      name_of(plan.question.granularity), name_of(plan.question.aggregation),
                      name_of(plan.question.goal)),
      .found_on = plan.trace,
      .gpu = plan.spec.title,
      .clocks = plan.grid,
      .power_limit_w = plan.power_limit_w,
      .model_error = model_error_text(plan.spec)};
  if (!o.page.empty()) write_output(o.page, transfer_page(caption, drawn));
  if (!o.plot.empty()) write_output(o.plot, transfer_svg(caption, drawn));
}

constexpr std::string_view captured_prefix = "graph:", given_suffix = ".csv";

void require_database(const TransferOptions& o) {
  if (!o.db.empty()) return;
  throw UsageError(
      "--db is missing: the result database with the plan",
      {.in = {}, .hint = "or, for traces, --plan FILE.csv with columns kernel, mem, core"});
}

ExitStatus run_captured(const TransferOptions& o, const RunContext& context) {
  if (!o.batches.empty() || !o.tensor_parallel.empty() || !o.page.empty() || !o.plot.empty()) {
    throw UsageError("--batches, --tp, --page and --plot are for plans of traces",
                     {.in = {}, .hint = "what is given is a captured run"});
  }
  require_database(o);
  TransferCapturedOptions captured{
      .db = o.db,
      .plan_id = o.plan.empty() ? std::nullopt : std::optional(plan_named(o.plan).id),
      .runs = {},
      .host_power_w = o.host_power_w,
      .each = o.captured};
  for (const std::string& file : o.traces) captured.runs.push_back({file});
  if (!o.ranks.empty()) captured.runs.push_back(files_of_patterns(o.ranks));
  if (captured.runs.empty())
    throw UsageError("no capture to play the plan on; name one, or give --ranks");
  captured.each.step = o.step.step;
  captured.each.partial = o.step.partial;
  captured.each.format = o.format;
  return transfer_captured(captured, context);
}

// The answer of the newest run of one of the traces, else of the newest run of any; runs that
// somebody asked for come before those of experiments.
std::int64_t plan_for(const ResultStore& store, std::span<const Target> targets) {
  const QueryResult found = store.query(
      "SELECT run_id, trace_name FROM runs ORDER BY asked DESC, created_utc DESC, run_id DESC");
  if (found.rows.empty())
    throw UsageError("the database has no runs", {.in = {}, .hint = "name a plan with --plan"});
  const auto of_them = std::ranges::find_if(found.rows, [&](const auto& row) {
    return std::ranges::any_of(
        targets, [&](const Target& target) { return target.trace.name == text(row[1]); });
  });
  const auto& row = of_them != found.rows.end() ? *of_them : found.rows.front();
  return choose_plans(store, {.captured = false, .id = whole(row[0])}, "", "", {}).plans.front().id;
}

// A database's plan brings its GPU and clocks along, one from a file does not.
StoredPlan plan_of(const TransferOptions& o, std::span<const Target> targets) {
  if (o.plan.ends_with(given_suffix)) {
    if (!o.db.empty()) throw UsageError("give either --db or the plan's file");
    const std::string& gpu = o.captured.gpu;
    StoredPlan plan = parse_given_plan(read_file(o.plan), o.plan,
                                       load_gpu(gpu.empty() ? "rtx-3080-ti" : gpu), o.clocks);
    std::vector<Trace> traces;
    for (const Target& target : targets) traces.push_back(target.trace);
    require_known_kernels(plan, traces);
    return plan;
  }
  require_database(o);
  if (!o.captured.gpu.empty() || !o.clocks.empty())
    throw UsageError("--gpu and --clocks are for captures and for plans of a .csv file");
  check_result_database(o.db);
  const ResultStore store = read_results(o.db);
  StoredPlan plan =
      load_plan(store, o.plan.empty() ? plan_for(store, targets) : plan_named(o.plan).id);
  if (o.plan.empty()) tell("note: {}, is the one taken; --plan names another\n", describe(plan));
  say_if_not_calibrated(plan.spec);
  return plan;
}

ExitStatus run(const TransferOptions& o, const RunContext& context) {
  const auto capture = std::ranges::find_if(o.traces, names_capture);
  const bool captured = !o.ranks.empty() || capture != o.traces.end();
  if (o.plan.starts_with(captured_prefix) || (o.plan.empty() && captured))
    return run_captured(o, context);
  if (capture != o.traces.end()) {
    throw UsageError(
        fmt::format("{}: is a capture; --plan {} is of traces", with_input_named(*capture), o.plan),
        {.in = {},
         .hint = "--plan graph:N takes one of a captured run; 'rubato trace import FILE -o "
                 "step.json' makes a trace"});
  }
  const CapturedRunOptions& c = o.captured;
  if (!o.ranks.empty() || !c.captured.clock.empty() || !c.captured.power.empty() ||
      !o.step.step.empty() || o.step.partial) {
    throw UsageError(
        "--ranks, --captured-clock, --power, --step and --partial are for "
        "plans of captured runs",
        {.in = {}, .hint = "--plan graph:N takes one"});
  }
  const std::vector<Target> targets = targets_of(o);
  if (targets.empty())
    throw UsageError("no trace to apply the plan to; name one, or give --batches or --tp");
  StoredPlan plan = plan_of(o, targets);
  plan.host_power_w = o.host_power_w.value_or(plan.host_power_w);
  OutputTable table = transfer_table();
  std::vector<DrawnTransfer> drawn;
  give_parts();
  for (const Target& target : targets) {
    auto found = transfer(plan, target.trace, context);
    if (context.stop_requested()) break;
    drawn.push_back({.transfer = std::move(found),
                     .panel = target.panel,
                     .batch = target.batch,
                     .source = target.trace.name == plan.trace});
    table.add_row(row_of(plan, drawn.back().transfer));
    context.report({.done = drawn.size(), .total = targets.size(), .note = target.trace.name});
  }
  tell_done(drawn.size(), targets.size(), "traces");
  if (drawn.empty()) return ExitStatus::interrupted;
  if (o.format == OutputFormat::table) {
    print_notes(
        answer_text(fmt::format("{}, on {}, {} W{}", describe(plan), printable(plan.spec.title),
                                format_number(plan.power_limit_w), beside_gpu(plan.host_power_w)),
                    transfer_answer(drawn)));
  }
  print(table, o.format);
  if (o.format == OutputFormat::table)
    print_notes(
        "\nChange is against the default clocks of each trace. own energy: the best plan found on "
        "that trace itself; regret: points that the plan saves less; 90 %: interval of the "
        "saving.\n");
  write_pictures(o, plan, drawn);
  return ExitStatus::done;
}

}  // namespace

Action setup_transfer(CommandLine& app) {
  auto o = std::make_shared<TransferOptions>();
  app.add_option(
      "TRACE,--trace", o->traces,
      "Traces to apply the plan to: shipped names or files; of a captured run: captures");
  app.add_option("--db", o->db, "Result database with the plan");
  app.add_option(
      "--plan", o->plan,
      "plan_id, or graph:N: graph_plan_id N of a captured run [the best plan of the latest run of "
      "what is named, else of the latest run]; FILE.csv: columns kernel, mem, core, e.g. a "
      "published plan");
  app.add_option("--clocks", o->clocks,
                 "Of a plan from a file: the clocks its own one is chosen from [the spec's first "
                 "grid]");
  app.add_option("--batches", o->batches,
                 "Also to the GPT step with these batch sizes (with commas)")
      ->delimiter(',');
  app.add_option("--tp", o->tensor_parallel,
                 "Also to the GPT step with these tensor-parallel degrees")
      ->delimiter(',');
  app.add_option("--collectives", o->collectives,
                 "Of --tp: model, or none: kernels alone, as Spaan et al. time them")
      ->one_of({"none", "model"})
      ->capture_default_str();
  app.add_option("--model", o->model, "Model of --batches and --tp")->capture_default_str();
  add_host_power_option(app, o->host_power_w, "[as the plan counted it]");
  app.add_option("--page", o->page, "Write an HTML page with the picture")
      ->ends_in({".html", ".htm"});
  app.add_option("--plot", o->plot, "Write the picture alone, as SVG")->ends_in({".svg"});
  app.add_option("--ranks", o->ranks,
                 "Captures of several ranks of one run, as one: files or a pattern such as "
                 "'rank*.json.gz'");
  app.add_option("--gpu", o->captured.gpu,
                 "Spec of the captures [the one of their GPU], or of a plan from a file "
                 "[rtx-3080-ti]");
  add_captured_clock_options(app, o->captured.captured);
  add_step_options(app, o->step);
  add_format_options(app, o->format);
  app.footer(
      "\nKernels are matched by name; those the plan does not know, such as collectives, stay at "
      "default clocks.\n"
      "Change is against the default clocks of each trace. Regret is what the trace's own plan for "
      "the same\n"
      "question would save beyond the transferred one, in points; it is negative where the "
      "transferred plan takes\n"
      "more time. 90 %: the interval of the transferred energy change. At equal time: "
      "beyond the transferred one in the time that one takes.\n"
      "A plan of a captured run is played as the Python package plays it: its clocks at the same "
      "shares of each\n"
      "pass; changes of clock are counted as the spec knows them.\n"
      "Example:\n  rubato transfer --db results.db --batches 1,5,10,20,40 --tp 1,2,4 --page "
      "transfer.html\n"
      "  rubato transfer --plan table1.csv --batches 1,40 --tp 1,16 --collectives none");
  return [o](const RunContext& context) {
    check_host_power(o->host_power_w);
    return run(*o, context);
  };
}

}  // namespace rubato
