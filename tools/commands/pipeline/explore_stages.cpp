// rubato explore of stages: the clock of every pass of a pipeline.

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/version.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/shared/stage_planner.hpp"
#include "explorer/pipeline/zeus_schedule.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/run_writer.hpp"
#include "sim/timeline/pipeline.hpp"
#include "tools/commands/explore.hpp"
#include "tools/commands/pipeline/plan_setting.hpp"
#include "tools/commands/pipeline/plan_tables.hpp"
#include "tools/commands/pipeline/stages_screen.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/drawing/page.hpp"
#include "tools/drawing/pipeline.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

// What the line asks for, as a pipeline.
struct AskedStages {
  const ExploreOptions& line;
  PipelineInput input;
  std::vector<Goal> goals;
  std::vector<Granularity> granularities;
  double jitter_frac = 0.0;
};

// Of a pipeline as planned only jitter; slow stages have plans of their own.
double jitter_of(const std::vector<std::string>& disturb) {
  const GraphDisturbance all = disturbance_of(disturb);
  if (!all.gpus.empty() || !all.links.empty() || !all.throttles.empty())
    throw UsageError("--disturb: of stages jitter=SPREAD",
                     {.in = {}, .hint = "'rubato pipeline straggle' plans beside a slow pipeline"});
  return all.jitter_frac;
}

// What shares a clock; where it is not said, what the stages were described with.
std::vector<Granularity> granularities_of_stages(const ExploreOptions& o, PipelineInput& input) {
  if (!o.questions.granularities_given)
    return {Granularity::run, Granularity::stage,
            input.clock_per == "kernel" ? Granularity::kernel : Granularity::pass};
  std::vector<Granularity> units = granularities_of(o.questions, input.stages.value_or(1));
  for (const Granularity unit : units) refuse_unanswerable(RunKind::stages, {.granularity = unit});
  const bool per_kernel = std::ranges::find(units, Granularity::kernel) != units.end();
  input.clock_per = per_kernel ? "kernel" : "pass";
  if (per_kernel && !input.profile.empty())
    throw UsageError("--per kernel: a profile holds times of passes, not of kernels");
  return units;
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
  if (!o.power_limits.empty()) input.power_limits = o.power_limits;
  if (!o.switching.empty()) input.switching = o.switching;
  if (o.power_limit_w) input.power_limit_w = o.power_limit_w;
  if (o.host_power_w) input.host_power_w = o.host_power_w;
  if (!input.profile.empty()) {
    if (o.power_limit_w || !o.clocks.empty() || !o.power_limits.empty())
      throw UsageError(
          fmt::format("{} does nothing for a profile: its rows hold the clocks and the limit that "
                      "they were measured at",
                      o.power_limit_w     ? "--power-limit"
                      : !o.clocks.empty() ? "--clocks"
                                          : "--power-limits"));
  }
  return input;
}

// The goals, and their slacks for the pipeline.
void ask(const QuestionOptions& questions, AskedStages& o) {
  o.goals = goals_of(questions);
  o.input.slacks_pct.clear();
  for (const Goal& goal : o.goals) {
    if (const auto* waste = std::get_if<LeastWaste>(&goal))
      o.input.slacks_pct.push_back(percent * waste->slack_frac);
  }
}

std::string title_of(const PipelineResult& plan) {
  return fmt::format("plan per {} for {:.5g} s", name_of(plan.granularity), plan.deadline_s);
}

void write_timeline(const AskedStages& o, const PipelineWork& work,
                    const std::vector<PipelineResult>& plans) {
  const PipelinePlan highest = highest_clocks(work);
  const SwitchModel switching = switch_model(o.input);
  std::vector<PipelineTrack> tracks{{baseline_name(o.input), &highest}};
  for (const PipelineResult& plan : plans) {
    if (plan.found()) tracks.push_back({title_of(plan), &plan.plan, switching});
  }
  FileWriter file(o.line.timeline);
  write_pipeline_timeline([&](std::string_view text) { file.write(text); }, work, tracks);
  tell_written(file.commit());
}

// Pictures by the name of the file: Chrome trace, Gantt chart, page.
void write_timeline(const AskedStages& o, const PipelinePlanner& planner,
                    const std::vector<PipelineResult>& plans, const ShownRun& shown,
                    const std::function<PlannedRun()>& rows, const ScreenLines& said) {
  const PipelineWork& work = planner.work();
  if (o.line.timeline.empty()) return;
  if (o.line.timeline.ends_with(".json")) return write_timeline(o, work, plans);
  std::vector<DrawnRun> drawn{{baseline_name(o.input), &planner.baseline()}};
  for (const PipelineResult& plan : plans) {
    if (plan.found()) drawn.push_back({title_of(plan), &plan.run});
  }
  std::string gantt = gantt_svg(work, drawn);
  if (o.line.timeline.ends_with(".svg")) return write_output(o.line.timeline, gantt);
  OutputTable front({{"time_s"}, {"energy_j"}});
  for (const FrontierVertex& v : planner.frontier().vertices)
    front.add_row({v.time_s, v.cost_j + planner.waiting_power_w() * v.time_s});
  const OutputTable table = plans_table(shown), passes = segments_table(rows());
  write_output(
      o.line.timeline,
      drawn_page(
          {"Clocks of a pipeline", describe(o.input, work), {}, {}, lines_json(said)},
          std::array{
              PagePart{.name = "gantt", .title = "Before and after", .svg = std::move(gantt)},
              PagePart{.name = "plans",
                       .title = "Plans",
                       .text = "Of one pipeline with one GPU per stage.",
                       .table = &table,
                       .charts = R"([{"title": "Energy over time", "x": "time_change_pct",
                                "y": ["energy_change_pct"], "by": "granularity"}])"},
              PagePart{.name = "front",
                       .title = "Frontier",
                       .text = "Least energy for a time, if any duration between measured "
                               "ones were possible.",
                       .table = &front,
                       .charts = R"([{"title": "Frontier", "x": "time_s", "y":
                                ["energy_j"], "line": true}])"},
              PagePart{.name = "passes", .title = "Passes", .table = &passes}}));
}

bool is_folder(const std::string& plan_file) {
  return !plan_file.empty() && plan_file != "-" && !plan_file.ends_with(".json");
}

void write_plans(const AskedStages& o, const PipelinePlanner& planner,
                 const std::vector<PipelineResult>& plans, const LoadedPipeline& loaded,
                 const RunContext& context) {
  if (o.line.plan_file.empty() || std::ranges::none_of(plans, &PipelineResult::found)) return;
  if (!is_folder(o.line.plan_file))
    return write_plan_file(o.line.plan_file,
                           file_of_plans(o.input, planner, plans, loaded, context.command_line));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].found()) continue;
    write_file(std::filesystem::path(o.line.plan_file) / zeus_file_name(i),
               zeus_schedule(planner.work(), plans[i].plan, plans[i].run));
  }
  tell_written(o.line.plan_file);
}

// What cannot be written or stored is better known before the work.
void check_outputs(const AskedStages& o, const LoadedPipeline& loaded) {
  const bool per_kernel = !loaded.kernel_clocks.empty();
  if (lists(o.line, "kernels") && !per_kernel)
    throw loaded.modelled
        ? UsageError("--list kernels: the kernels of a pass share its clock",
                     {.in = {},
                      .hint = "--per kernel gives each its own; --list segments has "
                              "those of passes"})
        : UsageError("--list kernels: a profile holds times of passes, not of kernels",
                     {.in = {}, .hint = "--list passes, or segments"});
  if (!o.line.db.empty()) check_storable(loaded.work);
  if (is_folder(o.line.plan_file) &&
      std::ranges::find(o.granularities, Granularity::kernel) != o.granularities.end()) {
    throw UsageError(
        "Zeus sets one clock per pass; this plan has one per kernel",
        {.in = {}, .hint = "--plan-file plan.json writes it, or plan with --per pass"});
  }
}

// The plans of each goal, in their order, coarsest first.
std::vector<PipelineResult> plans_for(const AskedStages& o, const LoadedPipeline& loaded,
                                      const PipelinePlanner& planner, const PlannerOptions& options,
                                      const RunContext& context) {
  const auto intervals = intervals_of(loaded, options.switching);
  const auto verdict = [&](const PipelineResult& plan) {
    return verdict_of(loaded, plan, options.switching);
  };
  const StagePlanner stages(planner, options, o.granularities, context);
  std::vector<std::vector<PipelineResult>> by_deadline =
      stages.plans_with_odds(intervals ? &*intervals : nullptr, options.deadlines_s,
                             o.line.questions.odds_pct / percent, context);
  std::vector<PipelineResult> plans;
  std::size_t deadline = 0;
  for (const Goal& goal : o.goals) {
    const bool by_time = std::holds_alternative<LeastWaste>(goal);
    std::vector<PipelineResult> of_goal;
    if (!by_time) of_goal = stages.plans_of_goal(goal, verdict, context);
    for (std::size_t g = 0; g < o.granularities.size(); ++g) {
      PipelineResult& plan =
          plans.emplace_back(std::move(by_time ? by_deadline[g][deadline] : of_goal[g]));
      if (!plan.found()) continue;
      if (!by_time && intervals) plan.interval = intervals->of(plan.plan);
      plan.verdict = verdict(plan);
      plan.fitted = !has_mark(marks_of(loaded, plan.plan), MarkKind::clocks_not_fitted);
    }
    if (by_time) ++deadline;
  }
  return plans;
}

}  // namespace

ExitStatus explore_stages(const ExploreOptions& line, const RunContext& context) {
  PipelineInput input = input_of(line);
  std::vector<Granularity> granularities = granularities_of_stages(line, input);
  AskedStages o{.line = line,
                .input = std::move(input),
                .goals = {},
                .granularities = std::move(granularities),
                .jitter_frac = jitter_of(line.disturb)};
  QuestionOptions asked = line.questions;
  const bool by_time = time_budget_s(asked).has_value();
  if (!by_time) ask(asked, o);
  if (!o.line.db.empty()) (void)open_result_database(o.line.db);  // better known before the work
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  check_outputs(o, loaded);
  PlannerOptions options = planner_options(o.input);
  const double baseline_s = simulate(work, highest_clocks(work)).time_s;
  if (by_time) {
    ask_for_time(asked, baseline_s);
    ask(asked, o);
  }
  for (const double slack_pct : o.input.slacks_pct)
    options.deadlines_s.push_back(baseline_s * (1.0 + slack_pct / percent));
  give_parts();
  const TimeLimit limit(line.limits.time_s, context);
  const PipelinePlanner planner(work, options, limit.context());
  const std::vector<PipelineResult> plans = plans_for(o, loaded, planner, options, limit.context());
  const ShownRun shown = shown_run(o.input, loaded, planner, plans, o.jitter_frac,
                                   o.line.questions.odds_pct / percent, line.db, line.plan_file);
  const auto rows = [&] {
    const PipelineRecord record = record_of(o.input, loaded, context.command_line);
    return PlannedRun{stage_rows(planner, record), stage_plans_rows(planner, plans, record)};
  };
  const ScreenLines said = print_exploration(
      shown, rows,
      std::array{ListedTable{
          "kernels", [&] { return stage_kernels_table(work, plans, loaded.kernel_clocks); }}},
      line.lists, line.format);
  // First, so that a file that cannot be written loses nothing. Parts cannot be stored as such.
  if (!o.line.db.empty() && !is_part())
    store_screen(o.line.db, store_pipeline(o.line.db, planner, plans, o.input, loaded, context),
                 said);
  write_timeline(o, planner, plans, shown, rows, said);
  write_plans(o, planner, plans, loaded, context);
  return answers_of(planner, plans).some_hold() ? ExitStatus::done : ExitStatus::no_plan;
}

}  // namespace rubato
