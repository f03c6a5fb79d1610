// rubato explore: find clocks for a trace on a GPU.

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "explorer/slack_ladder.hpp"
#include "models/measured/measured_table.hpp"
#include "sim/timeline/plan.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/plans/captured_switching.hpp"
#include "tools/commands/plans/explore_captured.hpp"
#include "tools/commands/plans/explore_help.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/comm_sms.hpp"
#include "tools/options/files.hpp"
#include "tools/options/limits.hpp"
#include "tools/options/questions.hpp"
#include "tools/options/switching.hpp"
#include "tools/options/table.hpp"
#include "tools/terminal/answers_table.hpp"
#include "tools/terminal/exploration_answer.hpp"
#include "tools/terminal/exploration_notes.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/slack_ladder.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/import/file_patterns.hpp"

namespace rubato {

namespace {

struct ExploreOptions {
  std::vector<std::string> ranks, comm_sms;
  DisturbanceOptions disturbance;
  std::string trace = "gpt3-xl", gpu, cluster, clocks, db, plan_file, timeline;
  StepOptions step;
  CapturedClockOptions captured;
  QuestionOptions questions;
  std::optional<double> power_limit_w;
  SwitchOptions switching;
  TableOptions table;
  LimitOptions limits;
  bool per_kernel = false, per_pass = false, per_segment = false, own_steps = false;
  OutputFormat format = OutputFormat::table;
};

constexpr const char* default_gpu = "rtx-3080-ti";

// The name of the trace, or of a table that says itself how often its kernels run.
std::string heading_name(const ExploreOptions& o, const ExplorationInput& input) {
  return input.trace.provenance.generator == table_generator ? input.trace.name
                                                             : with_input_named(o.trace);
}

std::string options_json(const ExploreOptions& o, const ExplorationInput& input) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  return json_text(
      nlohmann::ordered_json{{"trace", heading_name(o, input)},
                             {"gpu", o.gpu},
                             {"cluster", o.cluster},
                             {"captured_clock", o.captured.clock},
                             {"power", o.captured.power},
                             {"table", o.table.sweep.file},
                             {"missing", o.table.given() ? o.table.missing : ""},
                             {"clocks", o.clocks},
                             {"granularity", o.questions.granularities},
                             {"aggregation", o.questions.aggregations},
                             {"goal", o.questions.goals},
                             {"slack_pct", o.questions.slacks_pct},
                             {"tolerance_pct", o.questions.tolerance_pct},
                             {"odds_pct", o.questions.odds_pct},
                             {"energy_budget_j", or_null(o.questions.energy_budget_j)},
                             {"power_budget_w", or_null(o.questions.power_budget_w)},
                             {"price_per_kwh", or_null(o.questions.prices.per_kwh)},
                             {"price_per_gpu_hour", o.questions.prices.per_gpu_hour},
                             {"pue", o.questions.prices.pue},
                             {"host_power_w", o.questions.prices.host_power_w},
                             {"power_limit_w", or_null(o.power_limit_w)},
                             {"time_limit_s", or_null(o.limits.time_s)},
                             {"gap_pct", or_null(o.limits.gap_pct)},
                             {"switching", o.switching.source},
                             {"switch_latency_us", or_null(o.switching.latency_us)},
                             {"switch_stall_us", or_null(o.switching.stall_us)},
                             {"switch_energy_j", or_null(o.switching.energy_j)},
                             {"switch_dwell_us", or_null(o.switching.dwell_us)},
                             {"mem_switch_latency_us", or_null(o.switching.mem_latency_us)},
                             {"mem_switch_stall_us", or_null(o.switching.mem_stall_us)},
                             {"mem_switch_energy_j", or_null(o.switching.mem_energy_j)}});
}

// ", slack 2 %"; empty for goals without slack, and for a slack of 0.
std::string slack_text(const Goal& goal) {
  const auto* waste = std::get_if<LeastWaste>(&goal);
  return waste == nullptr || waste->slack_frac == 0.0
             ? ""
             : fmt::format(", slack {} %", format_number(percent * waste->slack_frac));
}

void write_timeline(const ExploreOptions& o, const ExplorationInput& input,
                    const Exploration& found) {
  const GpuModel model = model_of(input);
  const Plan defaults = uniform_plan(input.trace, found.grid.default_clock());
  std::vector<TimelineTrack> tracks{{"default clocks", &defaults, input.switching}};
  for (const PlanResult& result : found.plans) {
    if (!result.found()) continue;
    const Question& q = result.question;
    tracks.push_back({fmt::format("{}, {}, {}{}", name_of(q.granularity), name_of(q.aggregation),
                                  name_of(q.goal), slack_text(q.goal)),
                      &result.plan, switching_of(input, q)});
  }
  FileWriter file(o.timeline);
  write_timeline([&](std::string_view text) { file.write(text); }, input.trace, model, found.grid,
                 tracks);
  tell_written(file.commit());
}

void print_ladder(std::span<const SlackStep> ladder, const Totals& base,
                  const std::optional<Prices>& prices) {
  if (ladder.empty()) return;
  const bool segments =
      std::ranges::find(ladder, Granularity::automatic, &SlackStep::granularity) != ladder.end();
  print(
      fmt::format("Least energy within a slack, whatever the odds, % (changes of clock free{}):\n",
                  segments ? "; segment: counted" : ""));
  print(ladder_table(ladder, base), OutputFormat::table);
  print("\n");
  if (!prices) return;
  print("Cost of these plans, %:\n");
  print(cost_ladder_table(ladder, base, *prices), OutputFormat::table);
  print("\n");
}

// Plans as people see them: what is left of a saving once changes of clock are counted is never
// left out for want of room.
void print_plans(const Exploration& found) {
  OutputTable plans = plans_table(found);
  const OutputTable counted = counted_table(found);
  const auto has_room = [&](std::string_view key) {
    return plans.has_room_for(key, table_style());
  };
  const bool apart = counted.rows() > 0 &&
                     !(has_room("clock_switches_per_s") && has_room("counted_energy_change_pct"));
  if (apart) plans = plans_table(found, Counted::apart);
  print(plans, OutputFormat::table);
  print("\n");
  if (apart) print_tables({{"counted", &counted}}, OutputFormat::table);
}

// A program reads one document: JSON holds every table asked for, CSV exactly one.
void print_results(const ExploreOptions& o, const ExplorationInput& input, const Exploration& found,
                   const RunContext& context) {
  const OutputTable plans = plans_table(found), passes = passes_table(found);
  const OutputTable kernels = kernels_table(input.trace, found),
                    segments = segments_table(input.trace, found), notes = notes_table(found),
                    run = run_table(heading_name(o, input), input, found);
  const std::optional<Prices> prices = asked_prices(found);
  const std::vector<SlackStep> ladder = slack_ladder(input, found, context);
  const Totals& base = found.baseline.total;
  const OutputTable steps = slack_steps_table(ladder, base, prices);
  std::vector<NamedTable> asked;
  const OutputTable answers = answers_table<PlanResult>(
      answers_of(found), found.grid.label(found.grid.default_clock()),
      [&](const PlanResult& plan) { return clocks_text(found.grid, plan.plan.clock_of_site); },
      [&](const PlanResult& plan) {
        const Totals& applied = plan.counted ? *plan.counted : plan.sim.total;
        return std::pair(change_pct(applied.energy_j, base.energy_j),
                         change_pct(applied.time_s, base.time_s));
      });
  if (o.format == OutputFormat::json) asked.push_back({"run", &run});
  if (o.format == OutputFormat::json) asked.push_back({"answers", &answers});
  if (o.format == OutputFormat::json && steps.rows() > 0) asked.push_back({"slacks", &steps});
  if (o.format != OutputFormat::table) asked.push_back({"plans", &plans});
  if (o.format == OutputFormat::json) asked.push_back({"notes", &notes});
  if (o.per_pass) asked.push_back({"passes", &passes});
  if (o.per_kernel) asked.push_back({"kernels", &kernels});
  // A terminal shows the segments of a plan unasked while they fit on it.
  constexpr std::size_t few = 60;
  const bool listed = o.format == OutputFormat::table && o.questions.granularities_given;
  const bool unasked = listed && segments.rows() > 0 && segments.rows() <= few;
  if (o.per_segment || unasked) asked.push_back({"segments", &segments});
  if (o.format == OutputFormat::table) {
    print_notes(exploration_heading(heading_name(o, input), input, found));
    print_notes('\n' + exploration_answer(input, found, o.db) + '\n');
    print_ladder(ladder, base, prices);
    print_plans(found);
  }
  print_tables(asked, o.format);
  if (o.format != OutputFormat::table) return;
  print_notes(exploration_notes(input, found));
  if (listed && segments.rows() > few && !o.per_segment)
    print(fmt::format("{} segments; --per-segment lists them.\n", segments.rows()));
}

bool is_captured_run(const ExploreOptions& o) { return !o.ranks.empty() || names_capture(o.trace); }

ExitStatus run_captured(const ExploreOptions& o, const CommandLine& line,
                        const RunContext& context) {
  refuse(
      line,
      {"--cluster", "--tolerance", "--per-segment", "--per-pass", "--table", "--missing", "--gap"},
      "does nothing for a captured run",
      "'rubato trace import FILE -o step.json' makes a trace of one stream, which knows it");
  refuse_without_goal(o.questions, line);
  const bool waste = std::ranges::any_of(o.questions.goals, names_waste);
  std::vector<Goal> goals = goals_besides_waste(o.questions);
  if (!goals.empty() && line.has("--comm-sms"))
    throw UsageError(
        fmt::format("--comm-sms does nothing for goal {}", name_of(goals.front())),
        {.in = {}, .hint = "ask for goals other than energy within a slack in a run of their own"});
  if (!o.ranks.empty() && line.has("TRACE")) throw UsageError("give either TRACE or --ranks");
  CapturedRunOptions captured{
      .files = o.ranks.empty() ? std::vector{o.trace} : files_of_patterns(o.ranks),
      .gpu = o.gpu,
      .clocks = o.clocks,
      .step = o.step.step,
      .db = o.db,
      .plan_file = o.plan_file,
      .timeline = o.timeline,
      .captured = o.captured,
      .power_limit_w = o.power_limit_w,
      .time_limit_s = o.limits.time_s,
      .switching = given_switching(line, o.switching),
      .granularities =
          line.has("--granularity") ? o.questions.granularities : std::vector<std::string>{},
      .aggregations = aggregations_of(o.questions),
      .slacks_pct = line.has("--slack") ? o.questions.slacks_pct : std::vector<double>{},
      .disturbance = o.disturbance,
      .comm_sms = comm_sms_of(o.comm_sms),
      .odds_pct = o.questions.odds_pct,
      .waste = waste,
      .goals = std::move(goals),
      .host_power_w = o.questions.prices.host_power_w,
      .partial = o.step.partial,
      .per_kernel = o.per_kernel,
      .own_steps = o.own_steps,
      .format = o.format};
  return explore_captured_run(captured, context);
}

// One table in a file, and a measured table that has its own clocks.
void refuse_what_tables_cannot(const ExploreOptions& o, const CommandLine& line) {
  const bool one_table = o.format == OutputFormat::csv || o.format == OutputFormat::json_lines;
  if (one_table && o.per_pass + o.per_kernel + o.per_segment > 1) {
    throw UsageError(
        fmt::format("--{} holds one table; give one of --per-pass, --per-kernel and --per-segment, "
                    "or use --json",
                    o.format == OutputFormat::csv ? "csv" : "json-lines"));
  }
  if (o.table.given())
    refuse(line, {"--clocks", "--power-limit", "--captured-clock", "--power"},
           "does nothing with --table");
}

ExitStatus run(const ExploreOptions& o, const CommandLine& line, const RunContext& context) {
  check_numbers(o.questions);
  if (line.has("--clocks") && o.clocks.empty())
    throw UsageError("--clocks is empty; expected a grid of the spec, or clocks",
                     {.in = {}, .hint = "leave it out for the spec's first grid"});
  if (is_captured_run(o)) return run_captured(o, line, context);
  refuse_without_goal(o.questions, line);
  refuse_options_of_captures(line);
  refuse_what_tables_cannot(o, line);
  const std::vector<Question> questions = questions_of(o.questions);
  if (std::ranges::find(questions, Granularity::automatic, &Question::granularity) ==
      questions.end())
    refuse(line, {"--gap"}, "does nothing without --granularity segment");
  // A table without a trace says itself how often its kernels run.
  const bool has_trace = !o.table.given() || line.has("TRACE");
  Trace trace = has_trace ? load_own_trace(o.trace, o.step) : Trace{};
  if (std::ranges::none_of(trace.kernels,
                           [](const Kernel& kernel) { return kernel.measured_time_s.has_value(); }))
    refuse(line, {"--captured-clock", "--power"},
           "does nothing for a trace without captured times");
  if (const auto clock = captured_clock_label(o.captured)) {
    if (!trace.captured) trace.captured.emplace();
    trace.captured->clock = clock;
  }
  GpuSpec spec = o.table.given() && !trace.captured
                     ? load_gpu_for_sweep(o.gpu, default_gpu, o.table.sweep)
                     : load_gpu_for_trace(o.gpu, default_gpu, trace, o.trace);
  if (!o.cluster.empty()) spec.cluster = load_cluster(o.cluster);
  ExplorationInput input{.trace = std::move(trace),
                         .spec = std::move(spec),
                         .grid = o.clocks,
                         .power_limit_w = o.power_limit_w,
                         .switching = {},
                         .questions = questions,
                         .host_power_w = o.questions.prices.host_power_w,
                         .odds_frac = o.questions.odds_pct / percent};
  input.switching = switch_model(o.switching, input.spec);
  if (o.table.given())
    plan_on_table(o.table, has_trace ? std::optional(input.trace) : std::nullopt, input);
  const PlanFileDatabase db(o.db, o.plan_file);
  // A database that cannot be written is better known before the work than after it.
  if (!db.path().empty()) (void)open_result_database(db.path());
  const SearchLimits limits{o.limits.time_s, o.limits.gap_pct.value_or(0.0) / percent};
  give_parts();
  const Exploration found = explore(input, limits, context);
  print_results(o, input, found, context);
  if (!o.timeline.empty()) write_timeline(o, input, found);
  if (!db.path().empty()) {
    const std::int64_t run =
        store_trace(db.path(), input, found, {context.command_line, options_json(o, input)});
    if (db.is_kept()) tell("stored as run {} in {}\n", run, o.db);
    db.write_plan(fmt::format("{}", run));
  }
  const bool none = std::ranges::none_of(found.plans, [](const PlanResult& plan) {
    return plan.found() && plan.status != SolveStatus::infeasible;  // late with its changes
  });
  return none ? ExitStatus::no_plan : ExitStatus::done;
}

}  // namespace

Action setup_explore(CommandLine& app) {
  auto o = std::make_shared<ExploreOptions>();
  app.add_option("TRACE", o->trace,
                 "Shipped name (gpt3-xl) or file: a trace, or what rubato trace import reads")
      ->capture_default_str()
      ->reads_file();
  app.add_option("--ranks", o->ranks,
                 "Captures of several ranks of one run, as one: files or a pattern such as "
                 "'rank*.json.gz'");
  add_disturbance_options(app, o->disturbance);
  add_comm_sms_option(app, o->comm_sms);
  app.add_option("--gpu", o->gpu,
                 "Shipped name or file of a GPU spec [the one of the GPU a trace was captured on "
                 "or a table measured on, else rtx-3080-ti]");
  app.add_option("--cluster", o->cluster,
                 "What a trace's collectives run on: shipped name or file, see rubato network "
                 "[guessed from the GPU's link]");
  add_captured_clock_options(app, o->captured);
  add_step_options(app, o->step);
  add_table_options(app, o->table);
  add_missing_option(app, o->table);
  app.add_option("--clocks", o->clocks,
                 "Clocks to choose from: a grid of the spec, e.g. 'full', or e.g. "
                 "'mem=5001,auto core=210:2100:105,auto' [the spec's first grid]");
  add_question_options(app, o->questions);
  app.add_option("--power-limit", o->power_limit_w, "Board power limit, W [the spec's]");
  add_switch_options(app, o->switching);
  add_limit_options(app, o->limits);
  app.add_option("--db", o->db, "Store the run in this SQLite database");
  app.add_option("--plan-file", o->plan_file,
                 "Write the answer's plan as a file that sets clocks, JSON (docs/apply.md)");
  app.add_option("--timeline", o->timeline,
                 "Chrome trace of one iteration under each plan, for ui.perfetto.dev")
      ->ends_in({".json"});
  app.add_flag("--per-kernel", o->per_kernel, "Also list the clock and the saving of every kernel");
  app.add_flag("--per-segment", o->per_segment,
               "Also list the segments that granularity segment chose");
  app.add_flag("--per-pass", o->per_pass, "Also list the totals of every pass");
  app.add_flag(
      "--own-steps", o->own_steps,
      "Captured runs: plans of granularity launch and segment give each step clocks of its "
      "own, though one step's are played for all");
  add_format_options(app, o->format);
  head_explore_options(app);
  app.footer(
      "\nChange is against the default clocks of the same GPU, trace and power limit.\n"
      "Examples:\n"
      "  rubato explore gpt3-xl --db results.db\n"
      "  rubato explore rank0.pt.trace.json.gz --captured-clock 1593/1410\n"
      "  rubato explore --ranks 'rank*.pt.trace.json.gz' --slack 1 --granularity gpu,kernel\n"
      "  rubato explore gpt3-xl --clocks full --slack 5 --granularity kernel --per-kernel\n"
      "  rubato explore --table sweep.csv --gpu a100-sxm4-80gb --slack 5\n"
      "  rubato explore gpt3-xl --goal time --power-budget 280 --granularity kernel\n"
      "  rubato explore gpt3-xl --goal cost --price-per-kwh 0.12 --price-per-gpu-hour 0.05");
  return [o, &app](const RunContext& context) {
    settle(o->questions, app);
    return run(*o, app, context);
  };
}

}  // namespace rubato
