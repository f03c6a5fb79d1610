// rubato pipeline plan: the clock of every pass for a time of the iteration.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/zeus_schedule.hpp"
#include "explorer/results/answers.hpp"
#include "sim/timeline/pipeline.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/plan_setting.hpp"
#include "tools/commands/pipeline/plan_tables.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/pipeline.hpp"
#include "tools/drawing/pipeline_page.hpp"
#include "tools/options/prices.hpp"
#include "tools/options/questions.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

struct PlanOptions {
  PipelineInput input;
  std::vector<double> deadlines_s;
  PriceOptions prices;
  double odds_pct = percent * usual_odds_frac;
  double jitter_pct = 0.0;
  std::uint32_t jitter_runs = 200;
  std::uint64_t seed = 1;
  bool per_pass = false, per_kernel = false;
  std::string db, gantt, page, timeline, zeus, plan_file;
  OutputFormat format = OutputFormat::table;
};

std::vector<double> deadlines_s(const PlanOptions& o, const PipelineWork& work) {
  std::vector<double> deadlines = o.deadlines_s;
  const double baseline_s = simulate(work, highest_clocks(work)).time_s;
  for (const double slack_pct : o.input.slacks_pct)
    deadlines.push_back(baseline_s * (1.0 + slack_pct / percent));
  return deadlines;
}

// What an iteration costs, and its change; nothing without prices.
std::vector<Cell> cost_cells(const PlanOptions& o, const PipelinePlanner& planner, double time_s,
                             double energy_j) {
  if (!o.prices.per_kwh) return {};
  const Prices prices = prices_of(o.prices);
  const double gpus = planner.work().schedule.shape.stages;
  const PipelineRun& base = planner.baseline();
  const double cost = prices.of(time_s, energy_j, gpus);
  return {cost, change_pct(cost, prices.of(base.time_s, base.energy_j, gpus))};
}

// Cells on jitter; none if it was not asked for.
std::vector<Cell> jitter_cells(const PlanOptions& o, const PipelineWork& work,
                               const PipelinePlan& plan) {
  if (o.jitter_pct == 0.0) return {};
  const JitterSummary summary =
      simulate_jitter(work, plan,
                      {.switching = switch_model(o.input),
                       .disturbance = {.jitter_frac = o.jitter_pct / percent, .seed = o.seed}},
                      o.jitter_runs);
  return {summary.mean_time_s, summary.p95_time_s};
}

// People see the status only where a plan is missing: of plans that were found the gap says it.
std::vector<Column> plans_columns(bool all_found, bool with_intervals, bool with_jitter,
                                  bool with_costs, bool with_notes) {
  std::vector<Column> columns{
      {"plan"},
      {.key = "status", .for_programs = all_found, .room = Room::needed},
      {"deadline_s", "deadline s", 4},
      {"time_s", "time s", 4, false, Room::spare},
      {"energy_j", "energy J", 1, false, Room::spare},
      {"time_change_pct", "time %", 2},
      {"energy_change_pct", "energy %", 2},
      range_column(with_intervals),
      range_column(with_intervals, "time, 90 %"),
      {.key = "time_change_low_pct", .for_programs = true},
      {.key = "time_change_high_pct", .for_programs = true},
      {.key = "time_change_expected_pct", .for_programs = true},
      {.key = "energy_change_low_pct", .for_programs = true},
      {.key = "energy_change_high_pct", .for_programs = true},
      {"odds_in_time_pct", "odds %", 0, !with_intervals},
      {"energy_change_expected_pct", "expected", 2, !with_intervals, Room::spare},
      {"lower_bound_j", "bound J", 1, false, Room::detail},
      {"gap_pct", "gap %", 3},
      {"average_power_w", "mean W", 1, false, Room::detail},
      {"clock_switches", "changes"}};
  if (with_jitter) {
    columns.push_back({"jitter_mean_time_s", "jittered s", 4});
    columns.push_back({"jitter_p95_time_s", "95 % below s", 4});
  }
  if (with_costs) {
    columns.push_back({.key = "cost", .for_programs = true});
    columns.push_back({"cost_change_pct", "cost %", 2, false, Room::needed});
  }
  columns.push_back({.key = "notes", .for_programs = !with_notes, .room = Room::needed});
  columns.push_back({.key = "is_answer", .for_programs = true});
  return columns;
}

bool have_intervals(const std::vector<PipelineResult>& plans) {
  return std::ranges::any_of(plans,
                             [](const PipelineResult& plan) { return plan.interval.has_value(); });
}

std::vector<Mark> marks_and_verdict(const LoadedPipeline& loaded, const PipelineResult& plan) {
  std::vector<Mark> marks = marks_of(loaded, plan.plan);
  if (!plan.verdict.applicable) marks.push_back({MarkKind::not_applicable, plan.verdict.because});
  return marks;
}

OutputTable plans_table(const PlanOptions& o, const PipelinePlanner& planner,
                        const std::vector<PipelineResult>& plans, const LoadedPipeline& loaded) {
  const std::vector<Mark> base_marks = marks_of(loaded, highest_clocks(planner.work()));
  const auto has_marks = [&](const PipelineResult& plan) {
    return plan.found() && !marks_and_verdict(loaded, plan).empty();
  };
  const std::vector<Column> columns =
      plans_columns(std::ranges::all_of(plans, &PipelineResult::found), have_intervals(plans),
                    o.jitter_pct != 0.0, o.prices.per_kwh.has_value(),
                    !base_marks.empty() || std::ranges::any_of(plans, has_marks));
  OutputTable table(columns);
  const PipelineRun& base = planner.baseline();
  const Answers<PipelineResult> answers = answers_of(planner, plans);
  const auto add = [&](std::vector<Cell> row, const std::optional<SavingInterval>& interval,
                       std::vector<Cell> more, const std::vector<Cell>& costs,
                       const PipelinePlan& plan, const std::vector<Mark>& marks, bool is_answer,
                       const std::optional<double>& odds_in_time = {}) {
    for (const Interval SavingInterval::*of : {&SavingInterval::energy, &SavingInterval::time}) {
      row.push_back(interval ? range_cell(((*interval).*of).low_pct, ((*interval).*of).high_pct)
                             : Cell());
    }
    for (const Interval SavingInterval::*of : {&SavingInterval::time, &SavingInterval::energy}) {
      for (const double Interval::*end :
           {&Interval::low_pct, &Interval::high_pct, &Interval::median_pct})
        row.push_back(interval ? Cell((*interval).*of.*end) : Cell());
    }
    row.insert(row.end() - 1, odds_cell(odds_in_time));
    row.insert(row.end(), more.begin(), more.end());
    const std::vector<Cell> jitter = jitter_cells(o, planner.work(), plan);
    row.insert(row.end(), jitter.begin(), jitter.end());
    row.insert(row.end(), costs.begin(), costs.end());
    row.emplace_back(kinds_text(marks));
    row.emplace_back(std::int64_t{is_answer ? 1 : 0});
    table.add_row(std::move(row));
  };
  add({baseline_name(o.input), std::string("-"), std::monostate{}, base.time_s, base.energy_j, 0.0,
       0.0},
      std::nullopt,
      {std::monostate{}, std::monostate{}, base.average_power_w(),
       static_cast<std::int64_t>(base.clock_switches)},
      cost_cells(o, planner, base.time_s, base.energy_j), highest_clocks(planner.work()),
      base_marks, false);
  for (const PipelineResult& plan : plans) {
    std::vector<Cell> row{std::string(plan.prices ? "least cost" : "deadline"),
                          std::string(name_of(plan.status)), plan.deadline_s};
    if (!plan.found()) {
      row.resize(columns.size());
      table.add_row(std::move(row));
      continue;
    }
    row.insert(row.end(), {plan.run.time_s, plan.energy_j, change_pct(plan.run.time_s, base.time_s),
                           change_pct(plan.energy_j, base.energy_j)});
    add(std::move(row), plan.interval,
        {plan.lower_bound_j, percent * plan.gap_frac, plan.run.average_power_w(),
         static_cast<std::int64_t>(plan.run.clock_switches)},
        cost_cells(o, planner, plan.run.time_s, plan.energy_j), plan.plan,
        marks_and_verdict(loaded, plan), answers.is_answer(plan), plan.odds_in_time);
  }
  return table;
}

std::string changes_note(const SwitchModel& switching) {
  if (switching.is_free()) return "Changes of clock are taken as free.\n";
  return fmt::format("Counted: a change of clock takes {}.\n", change_text(switching));
}

std::string plan_notes(const PlanOptions& o, const PipelinePlanner& planner,
                       const std::vector<PipelineResult>& plans, const LoadedPipeline& loaded) {
  std::vector<const PipelinePlan*> shown;
  for (const PipelineResult& plan : plans) shown.push_back(&plan.plan);
  return fmt::format(
             "No plan is faster than {:.6g} s; least energy at about {:.6g} s.\n"
             "Change is against the {}. The bound holds for all plans that keep "
             "the deadline, with free durations between the measured options.\n",
             planner.least_time_s(), planner.cheapest_time_s(), baseline_name(o.input)) +
         interval_note(loaded, shown) + refusal_note(plans) +
         (no_interval(loaded) ? "" : "expected: its middle.\n") +
         multiply_note(o.input, planner.work()) + changes_note(switch_model(o.input)) +
         setting_note(o.input, planner, plans, loaded, !o.zeus.empty() || !o.plan_file.empty());
}

// What to doubt, beside the answer. Both are of the first plan that was found.
std::string doubts_of(const PipelinePlanner& planner, const std::vector<PipelineResult>& plans,
                      const LoadedPipeline& loaded) {
  const auto first = std::ranges::find_if(plans, &PipelineResult::found);
  if (first == plans.end()) return "";
  const std::vector<Mark> base = marks_of(loaded, highest_clocks(planner.work()));
  const std::vector<Mark> marks = marks_of(loaded, first->plan);
  return doubts_text(std::array{&base, &marks});
}

std::string title_of(const PipelineResult& plan) {
  return fmt::format("plan for {:.5g} s", plan.deadline_s);
}

void write_timeline(const PlanOptions& o, const PipelineWork& work,
                    const std::vector<PipelineResult>& plans) {
  const PipelinePlan highest = highest_clocks(work);
  const SwitchModel switching = switch_model(o.input);
  std::vector<PipelineTrack> tracks{{baseline_name(o.input), &highest}};
  for (const PipelineResult& plan : plans) {
    if (plan.found()) tracks.push_back({title_of(plan), &plan.plan, switching});
  }
  FileWriter file(o.timeline);
  write_pipeline_timeline([&](std::string_view text) { file.write(text); }, work, tracks);
  tell_written(file.commit());
}

void write_files(const PlanOptions& o, const PipelinePlanner& planner,
                 const std::vector<PipelineResult>& plans, const OutputTable& table,
                 const LoadedPipeline& loaded, const RunContext& context) {
  const PipelineWork& work = planner.work();
  std::vector<DrawnRun> drawn{{baseline_name(o.input), &planner.baseline()}};
  for (const PipelineResult& plan : plans) {
    if (!plan.found()) continue;
    drawn.push_back({title_of(plan), &plan.run});
  }
  if (!o.gantt.empty()) write_output(o.gantt, gantt_svg(work, drawn));
  if (!o.timeline.empty()) {
    write_timeline(o, work, plans);
  }
  if (!o.page.empty()) {
    write_output(o.page, pipeline_page(planner, plans,
                                       {describe(o.input, work), baseline_name(o.input),
                                        plan_notes(o, planner, plans, loaded),
                                        doubts_of(planner, plans, loaded)},
                                       table));
  }
  if (!o.zeus.empty()) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!plans[i].found()) continue;
      write_file(std::filesystem::path(o.zeus) / zeus_file_name(i),
                 zeus_schedule(work, plans[i].plan, plans[i].run));
    }
    tell_written(o.zeus);
  }
  if (!o.plan_file.empty() && std::ranges::any_of(plans, &PipelineResult::found))
    write_plan_file(o.plan_file,
                    file_of_plans(o.input, planner, plans, loaded, context.command_line));
}

// A program reads one document: JSON holds every table asked for, JSON lines and CSV the last one.
void print_plans(const PlanOptions& o, const PipelinePlanner& planner,
                 const std::vector<PipelineResult>& plans, const OutputTable& table,
                 const LoadedPipeline& loaded) {
  const std::vector<KernelClocks>& kernel_clocks = loaded.kernel_clocks;
  const OutputTable passes = passes_table(planner.work(), plans);
  std::vector<NamedTable> asked{{"plans", &table}};
  if (o.per_pass) asked.push_back({"passes", &passes});
  std::optional<OutputTable> kernels;
  if (o.per_kernel) {
    kernels = kernels_table(planner.work(), plans, kernel_clocks);
    asked.push_back({"kernels", &*kernels});
  }
  const bool for_people = o.format == OutputFormat::table;
  if (for_people)
    print_notes(answer_text(describe(o.input, planner.work()),
                            pipeline_answer(planner, plans, doubts_of(planner, plans, loaded))));
  print_tables(asked, o.format);
  if (for_people) print_notes(plan_notes(o, planner, plans, loaded));
}

ExitStatus run_plan(const PlanOptions& o, const RunContext& context) {
  check_given(o.prices);
  check_odds(o.odds_pct);
  if (!o.db.empty()) (void)open_result_database(o.db);  // better known before the work
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  const std::vector<KernelClocks>& kernel_clocks = loaded.kernel_clocks;
  if (o.per_kernel && kernel_clocks.empty()) throw UsageError("--per-kernel needs --model");
  if (!o.db.empty()) check_storable(work);
  if (!o.zeus.empty() && !kernel_clocks.empty() && o.input.clock_per == "kernel") {
    throw UsageError("Zeus sets one clock per pass; this plan has one per kernel",
                     {.in = {}, .hint = "--plan-file writes it, or plan with --clock-per pass"});
  }
  PlannerOptions options = planner_options(o.input);
  options.deadlines_s = deadlines_s(o, work);
  give_parts();
  const PipelinePlanner planner(work, options, context);
  const auto intervals = intervals_of(loaded, options.switching);
  const auto planned = [&](std::span<const double> times_s, double odds_frac) {
    return plan_with_odds(planner, intervals ? &*intervals : nullptr, times_s, odds_frac, context);
  };
  std::vector<PipelineResult> plans = planned(options.deadlines_s, o.odds_pct / percent);
  if (o.prices.per_kwh) {  // the cheapest plan last: its deadline comes of its time
    const double worth_w = prices_of(o.prices).time_worth_w() * work.schedule.shape.stages;
    plans.push_back(planned(std::array{planner.cheapest(worth_w).time_s}, 0.0).front());
    plans.back().prices = prices_of(o.prices);
    plans.back().odds_in_time.reset();
  }
  for (PipelineResult& plan : plans) {
    if (!plan.found()) continue;
    plan.verdict = verdict_of(loaded, plan, switch_model(o.input));
    plan.fitted = !has_mark(marks_of(loaded, plan.plan), MarkKind::clocks_not_fitted);
  }
  const OutputTable table = plans_table(o, planner, plans, loaded);
  print_plans(o, planner, plans, table, loaded);
  // First, so that a file that cannot be written loses nothing. Parts cannot be stored as such.
  if (!o.db.empty() && !is_part()) store_pipeline(o.db, planner, plans, o.input, loaded, context);
  write_files(o, planner, plans, table, loaded, context);
  return std::ranges::any_of(plans, &PipelineResult::found) ? ExitStatus::done
                                                            : ExitStatus::no_plan;
}

}  // namespace

Action setup_pipeline_plan(CommandLine& app) {
  auto o = std::make_shared<PlanOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("--deadline", o->deadlines_s, "Times of an iteration, s (several with commas)")
      ->delimiter(',');
  app.add_option("--slack", o->input.slacks_pct,
                 "Deadlines as time beyond the highest clocks, % [0 if there is no --deadline]")
      ->delimiter(',');
  add_odds_option(app, o->odds_pct);
  add_prices(app, o->prices);
  app.add_option("--jitter", o->jitter_pct, "Spread of each pass's time, standard deviation, %")
      ->capture_default_str();
  app.add_option("--jitter-runs", o->jitter_runs, "Simulated iterations with jitter")
      ->capture_default_str();
  app.add_option("--seed", o->seed, "Seed of the jitter")->capture_default_str();
  app.add_flag("--per-pass", o->per_pass, "Also list the clock and the times of every pass");
  app.add_flag("--per-kernel", o->per_kernel, "With --model: also list the clock of every kernel");
  app.add_option("--db", o->db, "Store pipeline, frontier and plans in this SQLite database");
  app.add_option("--gantt", o->gantt, "Gantt chart before and after, SVG")->ends_in({".svg"});
  app.add_option("--page", o->page, "Page with Gantt chart, frontier and table, HTML")
      ->ends_in({".html", ".htm"});
  app.add_option("--timeline", o->timeline, "Chrome trace for ui.perfetto.dev, JSON")
      ->ends_in({".json"});
  app.add_option("--zeus", o->zeus, "Folder for schedules that Zeus loads, freqs_pipeline_*.py");
  app.add_option("--plan-file", o->plan_file,
                 "Write the answer's plan as a file that sets clocks, JSON (docs/apply.md)")
      ->ends_in({".json"});
  add_format_options(app, o->format);
  app.footer(
      "\nExamples:\n"
      "  rubato pipeline plan --profile a100.csv --blocked-power 83.64 --microbatches 12 "
      "--slack 0,5,10\n"
      "  rubato pipeline plan --model gpt3-xl --stages 4 --clock-per kernel --gantt gantt.svg\n"
      "  rubato pipeline plan --model gpt3-xl --stages 4 --price-per-kwh 0.12 "
      "--price-per-gpu-hour 0.05");
  return [o](const RunContext& context) {
    std::vector<double>& slacks_pct = o->input.slacks_pct;
    for (const double slack_pct : slacks_pct) check_slack(slack_pct);
    if (o->deadlines_s.empty() && slacks_pct.empty() && !o->prices.per_kwh) slacks_pct = {0.0};
    return run_plan(*o, context);
  };
}

}  // namespace rubato
