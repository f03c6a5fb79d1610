// rubato transfer: a plan found on one run, applied to others: of a trace to traces, of a captured
// run to captures.

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

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
#include "tools/commands/explore.hpp"
#include "tools/commands/plans/transfer_table.hpp"
#include "tools/drawing/page.hpp"
#include "tools/drawing/transfer.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/prices.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/stored_runs.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/file_patterns.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

struct TransferOptions {
  std::string db, model = "gpt3-xl", collectives = "model", clocks, page, plan;
  ExploreOptions captured;
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

// Applies a plan to so many runs, one after the other, and prints what came of it.
// @return as far as it came
std::vector<DrawnTransfer> apply(const TransferredPlan& plan, double host_power_w, std::size_t runs,
                                 const std::function<DrawnTransfer(std::size_t)>& transfer_to,
                                 OutputFormat format, const RunContext& context) {
  std::vector<DrawnTransfer> drawn;
  give_parts();
  while (drawn.size() < runs) {
    DrawnTransfer next = transfer_to(drawn.size());
    if (context.stop_requested()) break;
    for (const std::string& note : next.transfer.notes)
      tell("note: {}: {}\n", next.transfer.run, note);
    drawn.push_back(std::move(next));
    context.report({.done = drawn.size(), .total = runs, .note = drawn.back().transfer.run});
  }
  tell_done(drawn.size(), runs, plan.captured ? "captured runs" : "traces");
  if (drawn.empty()) return drawn;
  const bool for_people = format == OutputFormat::table;
  if (for_people) {
    print_notes(answer_text(
        fmt::format("{}, on {}{}", found_words(plan), plan.gpu, beside_gpu(host_power_w)),
        transfer_answer(drawn)));
  }
  print(transfer_table(plan, drawn), format);
  if (for_people) {
    print_notes(plan.captured ? "\nChange is against the default clocks of each capture, changes "
                                "of clock counted. own "
                                "energy: the best plan found on that capture itself; regret: "
                                "points that the plan saves "
                                "less.\n"
                              : "\nChange is against the default clocks of each trace. own energy: "
                                "the best plan found "
                                "on that trace itself; regret: points that the plan saves less; 90 "
                                "%: interval of the "
                                "saving.\n");
  }
  return drawn;
}

void write_page(const TransferOptions& o, const StoredPlan& plan,
                const std::vector<DrawnTransfer>& drawn) {
  if (o.page.empty()) return;
  const OutputTable table = transfer_table(name_of(plan), drawn);
  double least_known = 1.0;
  for (const DrawnTransfer& one : drawn)
    least_known = std::min(least_known, one.transfer.known_frac);
  write_output(
      o.page,
      drawn_page({"A plan on other traces",
                  fmt::format("{}; {}, {:g} W, clocks '{}'", found_words(name_of(plan)),
                              plan.spec.title, plan.power_limit_w, plan.grid),
                  transfer_answer(drawn),
                  fmt::format("model error: {}. At least {:.0f} % of a trace's time is in kernels "
                              "that the plan knows; the others keep the default clocks",
                              model_error_text(plan.spec), 100.0 * least_known)},
                 std::array{PagePart{
                     .name = "transfers",
                     .title = "Saving, regret, time",
                     .text = "Against the default clocks of each trace. Regret is what a trace's "
                             "own plan for the same question would save beyond the transferred "
                             "one; at equal time, in the time the transferred one takes.",
                     .table = &table,
                     .charts = R"([{"title": "Energy", "x": "trace", "y": ["energy_change_pct",
                       "own_energy_change_pct"]}, {"title": "Time", "x": "trace", "y":
                       ["time_change_pct", "own_time_change_pct"]}, {"title": "Regret", "x":
                       "trace", "y": ["regret_points", "equal_time_regret_points"]}])"}}));
}

constexpr std::string_view given_suffix = ".csv";

void require_database(const TransferOptions& o) {
  if (!o.db.empty()) return;
  throw UsageError(
      "--db is missing: the result database with the plan",
      {.in = {}, .hint = "or, for traces, --plan FILE.csv with columns kernel, mem, core"});
}

// The answer of the newest of the runs that fit, else of the newest run; runs that somebody asked
// for come before those of experiments.
// @param runs  rows of id and name, newest first; not empty
template <class Fits>
std::int64_t plan_for(const ResultStore& store, const QueryResult& runs, const Fits& fits) {
  const auto fitting =
      std::ranges::find_if(runs.rows, [&](const auto& row) { return fits(text(row[1])); });
  const auto& row = fitting != runs.rows.end() ? *fitting : runs.rows.front();
  return choose_plans(store, whole(row[0]), "", "", {}).plans.front().id;
}

std::int64_t plan_for(const ResultStore& store, std::span<const Target> targets) {
  const QueryResult found = store.query(
      "SELECT run_id, work FROM v_runs WHERE kind = 'trace' ORDER BY asked DESC, created_utc DESC, "
      "run_id DESC");
  if (found.rows.empty())
    throw UsageError("the database has no runs of traces",
                     {.in = {}, .hint = "name a plan with --plan"});
  return plan_for(store, found, [&](const std::string& trace) {
    return std::ranges::any_of(targets,
                               [&](const Target& target) { return target.trace.name == trace; });
  });
}

std::string base_name(std::string_view file) {
  return std::filesystem::path(file).filename().string();
}

// Only the names of files are compared: folders may have been written in another way when the run
// was stored.
std::int64_t plan_for(const ResultStore& store, const std::vector<std::string>& files) {
  const QueryResult found = store.query(
      "SELECT run_id, work FROM v_runs WHERE kind = 'capture' ORDER BY asked DESC, created_utc "
      "DESC, run_id DESC");
  if (found.rows.empty()) {
    throw UsageError("the database has no captured run whose plan could be played",
                     {.in = {}, .hint = "store one with 'rubato explore CAPTURE --db FILE'"});
  }
  return plan_for(store, found, [&](const std::string& captures) {
    return std::ranges::equal(split(captures, '\n'), files, {}, base_name, base_name);
  });
}

template <class Plan>
void tell_taken(const TransferOptions& o, const Plan& plan) {
  if (o.plan.empty())
    tell("note: {}, is the one taken; --plan N names another\n", found_words(name_of(plan)));
}

// Captured runs on which to play a plan: files of each.
std::vector<std::vector<std::string>> captured_runs(const TransferOptions& o) {
  if (!o.batches.empty() || !o.tensor_parallel.empty() || !o.page.empty()) {
    throw UsageError("--batches, --tp and --page are for plans of traces",
                     {.in = {}, .hint = "what is given is a captured run"});
  }
  require_database(o);
  std::vector<std::vector<std::string>> runs;
  for (const std::string& file : o.traces) runs.push_back({file});
  if (!o.ranks.empty()) runs.push_back(files_of_patterns(o.ranks));
  if (runs.empty()) throw UsageError("no capture to play the plan on; name one, or give --ranks");
  return runs;
}

ExitStatus run_captured(const TransferOptions& o, const RunContext& context) {
  const std::optional<std::int64_t> plan_id =
      o.plan.empty() ? std::nullopt : std::optional(plan_named(o.plan));
  const std::vector<std::vector<std::string>> runs = captured_runs(o);
  check_result_database(o.db);
  const ResultStore store = read_results(o.db);
  StoredGraphPlan plan = load_graph_plan(store, plan_id ? *plan_id : plan_for(store, runs.front()));
  tell_taken(o, plan);
  plan.host_power_w = o.host_power_w.value_or(plan.host_power_w);
  ExploreOptions each = o.captured;
  each.step = o.step;
  each.format = o.format;
  const auto transfer_to = [&](std::size_t i) -> DrawnTransfer {
    each.work = runs[i];
    CapturedRun run = captured_run(each, context);
    if (run.input.spec.name != plan.gpu) {
      throw UsageError(fmt::format("{}: is of {}; the plan is for {}", runs[i].front(),
                                   run.input.spec.name, plan.gpu),
                       {.in = {},
                        .hint = "--gpu says which spec a capture is priced with, --plan N which "
                                "plan is played"});
    }
    const std::string first = with_input_named(runs[i].front());
    Transfer found = transfer(store, plan, std::move(run.input), context);
    found.run =
        runs[i].size() == 1 ? first : fmt::format("{} and {} more", first, runs[i].size() - 1);
    return {.transfer = std::move(found), .panel = {}};
  };
  const auto drawn =
      apply(name_of(plan), plan.host_power_w, runs.size(), transfer_to, o.format, context);
  return drawn.empty() ? ExitStatus::interrupted : ExitStatus::done;
}

// A database's plan brings its GPU and clocks along, one from a file does not.
StoredPlan plan_of(const TransferOptions& o, std::span<const Target> targets) {
  if (o.plan.ends_with(given_suffix)) {
    if (!o.db.empty()) throw UsageError("give either --db or the plan's file");
    const std::string& gpu = o.captured.gpu;
    StoredPlan plan = parse_given_plan(read_file(o.plan), o.plan,
                                       load_gpu(gpu.empty() ? usual_gpu() : gpu), o.clocks);
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
      load_plan(store, o.plan.empty() ? plan_for(store, targets) : plan_named(o.plan));
  tell_taken(o, plan);
  say_if_not_calibrated(plan.spec);
  return plan;
}

// Whether --plan is the number of a plan of a captured run.
bool names_captured_plan(const TransferOptions& o) {
  if (o.plan.empty() || o.db.empty() || o.plan.ends_with(given_suffix)) return false;
  return !read_results(o.db)
              .query("SELECT 1 FROM v_plans WHERE plan_id = ? AND kind = 'capture'",
                     {plan_named(o.plan)})
              .rows.empty();
}

ExitStatus run(const TransferOptions& o, const RunContext& context) {
  const auto capture = std::ranges::find_if(o.traces, names_capture);
  const bool captured = !o.ranks.empty() || capture != o.traces.end();
  const bool needs_database = o.db.empty() && !o.plan.ends_with(given_suffix);
  if (names_captured_plan(o) || (captured && (o.plan.empty() || needs_database)))
    return run_captured(o, context);
  if (capture != o.traces.end()) {
    throw UsageError(
        fmt::format("{}: is a capture; --plan {} is of traces", with_input_named(*capture), o.plan),
        {.in = {},
         .hint = "--plan N takes one of a captured run; 'rubato trace import FILE -o step.json' "
                 "makes a trace"});
  }
  const ExploreOptions& c = o.captured;
  if (!o.ranks.empty() || !c.captured.clock.empty() || !c.captured.power.empty() ||
      !o.step.step.empty() || !o.step.import.phase.empty() || o.step.import.partial) {
    throw UsageError(
        "--ranks, --captured-clock, --power, --step, --phase and --partial are for plans of "
        "captured runs",
        {.in = {}, .hint = "--plan N takes one"});
  }
  const std::vector<Target> targets = targets_of(o);
  if (targets.empty())
    throw UsageError("no trace to apply the plan to; name one, or give --batches or --tp");
  StoredPlan plan = plan_of(o, targets);
  plan.host_power_w = o.host_power_w.value_or(plan.host_power_w);
  const auto transfer_to = [&](std::size_t i) -> DrawnTransfer {
    return {.transfer = transfer(plan, targets[i].trace, context),
            .panel = targets[i].panel,
            .batch = targets[i].batch,
            .source = targets[i].trace.name == plan.trace};
  };
  const auto drawn =
      apply(name_of(plan), plan.host_power_w, targets.size(), transfer_to, o.format, context);
  if (drawn.empty()) return ExitStatus::interrupted;
  write_page(o, plan, drawn);
  return ExitStatus::done;
}

}  // namespace

Action setup_transfer(CommandLine& app) {
  auto o = std::make_shared<TransferOptions>();
  app.add_option(
      "TRACE,--trace", o->traces,
      "Runs to apply the plan to: traces (shipped names or files), or captures if the plan is of a "
      "captured run");
  app.add_option("--db", o->db, "Result database with the plan");
  app.add_option("--plan", o->plan,
                 "Plan to apply: its plan_id in the database [the best plan of the latest run that "
                 "fits], or a "
                 "CSV file with columns kernel, mem, core, such as a published plan");
  app.add_option("--clocks", o->clocks,
                 "With a plan from a file: clocks that each trace's own plan may use "
                 "[full]");
  app.add_option("--batches", o->batches,
                 "Also to the GPT step with these batch sizes (with commas)")
      ->delimiter(',');
  app.add_option("--tp", o->tensor_parallel,
                 "Also to the GPT step with these tensor-parallel degrees")
      ->delimiter(',');
  app.add_option("--collectives", o->collectives,
                 "Collectives of --tp: model, or none (kernels alone, as Spaan et al. time them)")
      ->one_of({"none", "model"})
      ->capture_default_str();
  app.add_option("--model", o->model, "Model of --batches and --tp")->capture_default_str();
  add_host_power_option(app, o->host_power_w, "[as the plan counted it]");
  app.add_option("--page", o->page, "Write an HTML page with the picture")
      ->ends_in({".html", ".htm"});
  app.add_option("--ranks", o->ranks,
                 "Captures of several ranks of one run, as one: files or a pattern such as "
                 "'rank*.json.gz'");
  app.add_option("--gpu", o->captured.gpu,
                 "GPU model: of captures [the captured GPU], of a plan from a file [rtx-3080-ti]");
  add_captured_clock_options(app, o->captured.captured);
  add_step_options(app, o->step);
  add_format_options(app, o->format);
  app.group("Traces made for it", {"--batches", "--tp", "--collectives", "--model"});
  app.footer(
      "Kernels are matched by name. Those that the plan does not know, such as collectives, stay "
      "at "
      "the default clocks. Changes are against the default clocks of each trace, with the 90 % "
      "interval of the energy. Regret: how many points more the trace's own best plan would save; "
      "negative if the transferred plan takes more time. At equal time: the same for an own plan "
      "that takes as long as the transferred one. A plan of a captured run is applied as the "
      "Python "
      "package does it: each clock for the same share of each pass, with the cost of switches.");
  return [o](const RunContext& context) {
    check_host_power(o->host_power_w);
    return run(*o, context);
  };
}

}  // namespace rubato
