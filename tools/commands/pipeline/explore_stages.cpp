// rubato explore of stages: the clock of every pass of a pipeline.

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/suggest.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/pipeline/goal_plan.hpp"
#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/zeus_schedule.hpp"
#include "explorer/results/answers.hpp"
#include "sim/timeline/pipeline.hpp"
#include "tools/commands/explore.hpp"
#include "tools/commands/pipeline/plan_setting.hpp"
#include "tools/commands/pipeline/plan_tables.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/pipeline.hpp"
#include "tools/drawing/pipeline_page.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

struct PlanOptions {
  PipelineInput input;
  std::vector<Goal> goals;
  std::optional<Prices> prices = {};
  double odds_pct = 0.0, jitter_pct = 0.0;
  bool per_pass = false, per_kernel = false;
  std::string db, timeline, plan_file;
  OutputFormat format = OutputFormat::table;
};

// Of a pipeline as planned only jitter; slow stages have plans of their own.
double jitter_of(const std::vector<std::string>& disturb) {
  const GraphDisturbance all = disturbance_of(disturb);
  if (!all.gpus.empty() || !all.links.empty() || !all.throttles.empty())
    throw UsageError("--disturb: of stages jitter=SPREAD",
                     {.in = {}, .hint = "'rubato pipeline straggle' plans beside a slow pipeline"});
  return all.jitter_frac;
}

// A file of stages, or a model that is spread over some, with what the line says otherwise.
PipelineInput input_of(const ExploreOptions& o) {
  PipelineInput input;
  const std::string& work = o.work.front();
  switch (stages_file(work)) {
    case StagesFile::description: input = read_description(work); break;
    case StagesFile::profile: input.profile = work; break;
    case StagesFile::none: input.model = work; break;
  }
  if (o.stages) input.stages = *o.stages;
  if (o.microbatches) input.microbatches = *o.microbatches;
  if (!o.schedule.empty()) input.schedule = o.schedule;
  if (o.blocked_power_w) input.blocked_power_w = o.blocked_power_w;
  if (!o.gpu.empty()) input.gpu = o.gpu;
  if (!o.clocks.empty()) input.clocks = o.clocks;
  if (!o.switching.empty()) input.switching = o.switching;
  if (o.power_limit_w) input.power_limit_w = o.power_limit_w;
  if (o.host_power_w) input.host_power_w = o.host_power_w;
  if (o.questions.granularities_given) {
    const std::vector<std::string> known{"microbatch", "launch"};
    const std::vector<std::string>& asked = o.questions.granularities;
    if (asked.size() > 1)
      throw UsageError("--granularity: of stages one at a time: microbatch or launch");
    if (std::ranges::find(known, asked.front()) == known.end())
      throw UsageError(fmt::format("--granularity '{}' is not known for stages{}", asked.front(),
                                   did_you_mean(asked.front(), known)));
    input.clock_per = asked.front() == "launch" ? "kernel" : "pass";
  }
  if (!input.profile.empty()) {
    if (input.clock_per == "kernel")
      throw UsageError("--granularity launch: a profile holds times of passes, not of kernels");
    if (o.power_limit_w || !o.clocks.empty())
      throw UsageError(
          fmt::format("{} does nothing for a profile",
                      o.power_limit_w ? "--power-limit" : "--clocks"),
          {.in = {}, .hint = "its rows hold the clocks and the limit that they were measured at"});
  }
  for (const Goal& goal : goals_of(o.questions)) {
    if (const auto* waste = std::get_if<LeastWaste>(&goal))
      input.slacks_pct.push_back(percent * waste->slack_frac);
  }
  return input;
}

// What an iteration costs, and its change; nothing without prices.
std::vector<Cell> cost_cells(const PlanOptions& o, const PipelinePlanner& planner, double time_s,
                             double energy_j) {
  if (!o.prices) return {};
  const double gpus = planner.work().schedule.shape.stages;
  const PipelineRun& base = planner.baseline();
  const double cost = o.prices->of(time_s, energy_j, gpus);
  return {cost, change_pct(cost, o.prices->of(base.time_s, base.energy_j, gpus))};
}

// Cells on jitter; none if it was not asked for.
std::vector<Cell> jitter_cells(const PlanOptions& o, const PipelineWork& work,
                               const PipelinePlan& plan) {
  constexpr std::uint32_t jittered_runs = 200;
  if (o.jitter_pct == 0.0) return {};
  const JitterSummary summary =
      simulate_jitter(work, plan,
                      {.switching = switch_model(o.input),
                       .disturbance = {.jitter_frac = o.jitter_pct / percent, .seed = 1}},
                      jittered_runs);
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
                    o.jitter_pct != 0.0, o.prices.has_value(),
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
    std::vector<Cell> row{plan.goal ? name_of(*plan.goal) : std::string("deadline"),
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
         setting_note(o.input, planner, plans, loaded, !o.plan_file.empty());
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

// Pictures by the name of the file: Chrome trace, Gantt chart, page.
void write_timeline(const PlanOptions& o, const PipelinePlanner& planner,
                    const std::vector<PipelineResult>& plans, const OutputTable& table,
                    const LoadedPipeline& loaded) {
  const PipelineWork& work = planner.work();
  if (o.timeline.empty()) return;
  if (o.timeline.ends_with(".json")) return write_timeline(o, work, plans);
  if (o.timeline.ends_with(".svg")) {
    std::vector<DrawnRun> drawn{{baseline_name(o.input), &planner.baseline()}};
    for (const PipelineResult& plan : plans) {
      if (plan.found()) drawn.push_back({title_of(plan), &plan.run});
    }
    return write_output(o.timeline, gantt_svg(work, drawn));
  }
  write_output(o.timeline, pipeline_page(planner, plans,
                                         {describe(o.input, work), baseline_name(o.input),
                                          plan_notes(o, planner, plans, loaded),
                                          doubts_of(planner, plans, loaded)},
                                         table));
}

bool is_folder(const std::string& plan_file) {
  return !plan_file.empty() && plan_file != "-" && !plan_file.ends_with(".json");
}

void write_plans(const PlanOptions& o, const PipelinePlanner& planner,
                 const std::vector<PipelineResult>& plans, const LoadedPipeline& loaded,
                 const RunContext& context) {
  if (o.plan_file.empty() || std::ranges::none_of(plans, &PipelineResult::found)) return;
  if (!is_folder(o.plan_file))
    return write_plan_file(o.plan_file,
                           file_of_plans(o.input, planner, plans, loaded, context.command_line));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].found()) continue;
    write_file(std::filesystem::path(o.plan_file) / zeus_file_name(i),
               zeus_schedule(planner.work(), plans[i].plan, plans[i].run));
  }
  tell_written(o.plan_file);
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

}  // namespace

ExitStatus explore_stages(const ExploreOptions& line, const RunContext& context) {
  PlanOptions o{.input = input_of(line),
                .goals = goals_of(line.questions),
                .odds_pct = line.questions.odds_pct,
                .jitter_pct = percent * jitter_of(line.disturb),
                .per_pass = lists(line, "passes"),
                .per_kernel = lists(line, "kernels"),
                .db = line.db,
                .timeline = line.timeline,
                .plan_file = line.plan_file,
                .format = line.format};
  for (const Goal& goal : o.goals) {
    if (const auto* cost = std::get_if<LeastCost>(&goal)) o.prices = cost->prices;
  }
  if (!o.db.empty()) (void)open_result_database(o.db);  // better known before the work
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  const std::vector<KernelClocks>& kernel_clocks = loaded.kernel_clocks;
  if (o.per_kernel && kernel_clocks.empty())
    throw UsageError("--list kernels: a profile holds times of passes, not of kernels");
  if (!o.db.empty()) check_storable(work);
  if (is_folder(o.plan_file) && !kernel_clocks.empty() && o.input.clock_per == "kernel") {
    throw UsageError("Zeus sets one clock per pass; this plan has one per kernel",
                     {.in = {},
                      .hint = "--plan-file plan.json writes it, or plan with --granularity "
                              "microbatch"});
  }
  PlannerOptions options = planner_options(o.input);
  const double baseline_s = simulate(work, highest_clocks(work)).time_s;
  for (const double slack_pct : o.input.slacks_pct)
    options.deadlines_s.push_back(baseline_s * (1.0 + slack_pct / percent));
  give_parts();
  const TimeLimit limit(line.limits.time_s, context);
  const PipelinePlanner planner(work, options, limit.context());
  const auto intervals = intervals_of(loaded, options.switching);
  const auto judge = [&](PipelineResult& plan) {
    if (!plan.found()) return;
    plan.verdict = verdict_of(loaded, plan, options.switching);
    plan.fitted = !has_mark(marks_of(loaded, plan.plan), MarkKind::clocks_not_fitted);
  };
  std::vector<PipelineResult> by_deadline =
      plan_with_odds(planner, intervals ? &*intervals : nullptr, options.deadlines_s,
                     o.odds_pct / percent, limit.context());
  std::vector<PipelineResult> plans;
  auto next = by_deadline.begin();
  for (const Goal& goal : o.goals) {
    if (std::holds_alternative<LeastWaste>(goal)) {
      plans.push_back(std::move(*next++));
    } else {
      plans.push_back(plan_for(planner,
                               {.goal = goal,
                                .gpus = static_cast<double>(work.schedule.shape.stages),
                                .can_be_set =
                                    [&](const PipelineResult& plan) {
                                      return verdict_of(loaded, plan, options.switching).applicable;
                                    }},
                               limit.context()));
      if (intervals && plans.back().found())
        plans.back().interval = intervals->of(plans.back().plan);
    }
    judge(plans.back());
  }
  const OutputTable table = plans_table(o, planner, plans, loaded);
  print_plans(o, planner, plans, table, loaded);
  // First, so that a file that cannot be written loses nothing. Parts cannot be stored as such.
  if (!o.db.empty() && !is_part()) store_pipeline(o.db, planner, plans, o.input, loaded, context);
  write_timeline(o, planner, plans, table, loaded);
  write_plans(o, planner, plans, loaded, context);
  return std::ranges::any_of(plans, &PipelineResult::found) ? ExitStatus::done
                                                            : ExitStatus::no_plan;
}

}  // namespace rubato
