// rubato explore: find clocks for a trace on a GPU.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/run_writer.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "explorer/slack_ladder.hpp"
#include "models/measured/measured_table.hpp"
#include "sim/timeline/plan.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/explore.hpp"
#include "tools/commands/plans/explore_options.hpp"
#include "tools/commands/plans/trace_screen.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/prices.hpp"
#include "tools/options/switching.hpp"
#include "tools/options/table.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/import/file_patterns.hpp"
#include "traces/launch_limit.hpp"

namespace rubato {

namespace {

// The name of the trace, or of a table that says itself how often its kernels run.
std::string heading_name(const ExploreOptions& o, const ExplorationInput& input) {
  return input.trace.provenance.generator == table_generator ? input.trace.name
                                                             : with_input_named(o.work.front());
}

// ", slack 2 %"; empty for goals without slack, and for a slack of 0.
std::string slack_text(const Goal& goal) {
  const auto* waste = std::get_if<LeastWaste>(&goal);
  return waste == nullptr || waste->slack_frac == 0.0
             ? ""
             : fmt::format(", slack {} %", format_number(percent * waste->slack_frac));
}

// The prices of goal `cost`, if it was asked for.
std::optional<Prices> prices_of(const Exploration& found) {
  for (const PlanResult& plan : found.plans) {
    if (const auto* cost = std::get_if<LeastCost>(&plan.question.goal)) return cost->prices;
  }
  return std::nullopt;
}

// The least energy of each granularity within slacks: a row each.
OutputTable slack_steps_table(std::span<const SlackStep> steps, const Totals& baseline,
                              const std::optional<Prices>& prices) {
  OutputTable table({{"granularity"},
                     {"slack_pct"},
                     {"time_change_pct"},
                     {"energy_change_pct"},
                     {"cost_change_pct"}});
  for (const SlackStep& step : steps) {
    std::vector<Cell> row{std::string(name_of(step.granularity)), percent * step.slack_frac};
    if (step.least) {
      const Cost& least = *step.least;
      row.insert(row.end(), {change_pct(least.time_s, baseline.time_s),
                             change_pct(least.energy_j, baseline.energy_j)});
      if (prices)
        row.emplace_back(change_pct(prices->of(least.time_s, least.energy_j),
                                    prices->of(baseline.time_s, baseline.energy_j)));
    }
    row.resize(5);
    table.add_row(std::move(row));
  }
  return table;
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

ScreenLines print_results(const ExploreOptions& o, const ExplorationInput& input,
                          const Exploration& found, const RunContext& context) {
  const std::string name = heading_name(o, input);
  return print_exploration(
      shown_run(name, input, found, o.db, o.plan_file),
      [&] {
        return PlannedRun{trace_rows(input, found), trace_plans_rows(input, found)};
      },
      std::array{ListedTable{"slacks",
                             [&] {
                               return slack_steps_table(slack_ladder(input, found, context),
                                                        found.baseline.total, prices_of(found));
                             },
                             true}},
      o.lists, o.format);
}

RunKind kind_of(const ExploreOptions& o) {
  const std::string& first = o.work.front();
  if (stages_file(first) != StagesFile::none) return RunKind::stages;
  if (o.work.size() > 1 || names_capture(first)) return RunKind::capture;
  return o.stages ? RunKind::stages : RunKind::trace;
}

// What is asked of a trace, with its GPU, clocks and measured table.
ExplorationInput input_of_trace(const ExploreOptions& o, const CommandLine& line,
                                const RunContext& context) {
  QuestionOptions asked = o.questions;
  if (time_budget_s(asked)) asked.budget.clear();
  std::vector<Granularity> units = granularities_of(asked, 1);
  std::ranges::replace(units, Granularity::gpu, Granularity::run);
  std::vector<Question> questions = questions_of(asked, RunKind::trace, units);
  // A table without a trace says itself how often its kernels run.
  const bool has_trace = o.table.empty() || line.has("WORK");
  Trace trace = has_trace ? load_own_trace(o.work.front(), o.step) : Trace{};
  if (std::ranges::none_of(trace.kernels,
                           [](const Kernel& kernel) { return kernel.measured_time_s.has_value(); }))
    refuse(line, {"--captured-clock", "--power"}, "does nothing: nothing was captured in WORK");
  if (const auto clock = captured_clock_label(o.captured)) {
    if (!trace.captured) trace.captured.emplace();
    trace.captured->clock = clock;
  }
  const SweepOptions table = table_of(o.table);
  GpuSpec spec = !o.table.empty() && !trace.captured
                     ? load_gpu_for_sweep(o.gpu, table)
                     : load_gpu_for_trace(o.gpu, trace, o.work.front());
  if (!o.cluster.empty()) spec.cluster = load_cluster(o.cluster);
  ExplorationInput input{.trace = std::move(trace),
                         .spec = std::move(spec),
                         .grid = o.clocks,
                         .power_limit_w = o.power_limit_w,
                         .switching = {},
                         .questions = {},
                         .host_power_w = o.host_power_w.value_or(0.0),
                         .odds_frac = o.questions.odds_pct / percent};
  if (std::ranges::none_of(input.trace.kernels,
                           [](const Kernel& k) { return k.collective.has_value(); }))
    refuse(line, {"--cluster"}, "does nothing: no collective is in WORK");
  input.switching = switch_model(o.switching, input.spec);
  if (!o.table.empty())
    plan_on_table(table, has_trace ? std::optional(input.trace) : std::nullopt, input);
  if (time_budget_s(o.questions)) {
    input.plans_only = true;
    asked = o.questions;
    ask_for_time(asked, explore(input, context).baseline.total.time_s);
    questions = questions_of(asked, RunKind::trace, units);
    input.plans_only = false;
  }
  const std::uint64_t launches = count_launches(input.trace.segments);
  const auto each = [](const Question& question) {  // launch by launch
    return question.granularity == Granularity::segment;
  };
  if (launches > most_listed_launches && !asked.granularities_given &&
      std::erase_if(questions, each) > 0)
    tell("note: plans per segment are left out: {} launches in one iteration, of at most {}\n",
         launches, most_listed_launches);
  input.questions = std::move(questions);
  return input;
}

ExitStatus explore_trace(const ExploreOptions& o, const CommandLine& line,
                         const RunContext& context) {
  const ExplorationInput input = input_of_trace(o, line, context);
  const PlanFileDatabase db(o.db, o.plan_file);
  // A database that cannot be written is better known before the work than after it.
  if (!db.path().empty()) (void)open_result_database(db.path());
  const SearchLimits limits{o.limits.time_s, o.limits.gap_pct.value_or(0.0) / percent};
  give_parts();
  const Exploration found = explore(input, limits, context);
  const ScreenLines said = print_results(o, input, found, context);
  if (!o.timeline.empty()) write_timeline(o, input, found);
  if (!db.path().empty()) {
    nlohmann::ordered_json options{{"WORK", heading_name(o, input)}};
    for (const auto& [name, value] : line.given()) options[name] = value;
    const std::int64_t run =
        store_trace(db.path(), input, found, {context.command_line, json_text(options)});
    store_screen(db.path(), run, said);
    if (db.is_kept()) tell("stored as run {} in {}\n", run, o.db);
    db.write_plan(fmt::format("{}", run));
  }
  return answers_of(found).some_hold() ? ExitStatus::done : ExitStatus::no_plan;
}

// A power limit holds for whole steps: nobody knows how long a change of it takes.
void choose_limits(ExploreOptions& o) {
  o.clocks = with_power_limits(o.clocks, o.power_limits);
  if (!o.questions.granularities_given) o.questions.granularities = {"run", "gpu"};
  for (const std::string& per : o.questions.granularities) {
    if (per != "run" && per != "gpu")
      throw UsageError(
          fmt::format("--power-limits are of whole steps; --per {} changes within one",
                      printable(per)),
          {.in = {},
           .hint = "--power-limit plans clocks under one limit; --per run,gpu takes many"});
  }
}

ExitStatus run(ExploreOptions& o, const CommandLine& line, const RunContext& context) {
  o.questions.granularities_given = line.has("--per");
  o.questions.switching_given = !o.switching.empty();
  check_host_power(o.host_power_w);
  if (line.has("--clocks") && o.clocks.empty())
    throw UsageError("--clocks is empty; expected a grid of the spec, or clocks",
                     {.in = {}, .hint = "leave it out for all clocks"});
  if (o.work.size() > 1 || o.work.front().find_first_of("*?[") != std::string::npos)
    o.work = files_of_patterns(o.work);
  const RunKind work = kind_of(o);
  const std::string_view kind = work == RunKind::capture  ? "capture"
                                : work == RunKind::stages ? "stages"
                                : o.table.empty()         ? "trace"
                                                          : "table";
  refuse_options(line, kind);
  if (!o.power_limits.empty() && work != RunKind::stages) choose_limits(o);
  if (time_budget_s(o.questions))
    refuse(line, {"--slack", "--goal"}, "does nothing beside a time as --budget");
  check_lists(o.lists, kind);
  const bool one_table = o.format == OutputFormat::csv || o.format == OutputFormat::json_lines;
  if (one_table && o.lists.size() > 1)
    throw UsageError("--list: a file of rows holds one table; name one, or use --json");
  switch (work) {
    case RunKind::trace: return explore_trace(o, line, context);
    case RunKind::capture: {
      if (o.questions.goals.empty() && o.questions.slacks.empty() && o.questions.budget.empty() &&
          o.questions.prices.empty())
        o.questions.slacks = {"0", "1", "2", "5"};
      return explore_captured_run(o, context);
    }
    case RunKind::stages: return explore_stages(o, context);
  }
  return ExitStatus::bug;
}

}  // namespace

Action setup_explore(CommandLine& app) {
  auto o = std::make_shared<ExploreOptions>();
  add_explore_options(app, *o);
  return [o, &app](const RunContext& context) { return run(*o, app, context); };
}

}  // namespace rubato
