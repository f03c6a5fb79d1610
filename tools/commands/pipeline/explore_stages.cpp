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
#include "common/version.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/pipeline/goal_search.hpp"
#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/zeus_schedule.hpp"
#include "explorer/results/answers.hpp"
#include "sim/timeline/pipeline.hpp"
#include "tools/commands/explore.hpp"
#include "tools/commands/pipeline/plan_setting.hpp"
#include "tools/commands/pipeline/plan_tables.hpp"
#include "tools/commands/pipeline/stages_screen.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/pipeline.hpp"
#include "tools/drawing/pipeline_page.hpp"
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
          fmt::format("{} does nothing for a profile: its rows hold the clocks and the limit that "
                      "they were measured at",
                      o.power_limit_w ? "--power-limit" : "--clocks"));
  }
  for (const Goal& goal : goals_of(o.questions)) {
    if (const auto* waste = std::get_if<LeastWaste>(&goal))
      input.slacks_pct.push_back(percent * waste->slack_frac);
  }
  return input;
}

// What to doubt beside the answer: marks of the default clocks and of the first plan.
std::string doubts_of(const ShownRun& shown) {
  const auto first = std::ranges::find_if(shown.plans, &ShownPlan::found);
  if (first == shown.plans.end()) return "";
  return doubts_text(std::array{&shown.marks, &first->marks});
}

// What was planned, in one row.
OutputTable about_table(const PipelineInput& input, const PipelinePlanner& planner) {
  OutputTable table({{"program_version"},
                     {"work"},
                     {"schedule"},
                     {"stages"},
                     {"microbatches"},
                     {"blocked_power_w"},
                     {"host_power_w"},
                     {"default_time_s"},
                     {"default_energy_j"},
                     {"least_time_s"},
                     {"cheapest_time_s"}});
  const PipelineWork& work = planner.work();
  const PipelineShape& shape = work.schedule.shape;
  table.add_row({std::string(program_version()), profile_name(input),
                 std::string(name_of(shape.kind)), std::int64_t{shape.stages},
                 std::int64_t{shape.microbatches}, work.blocked_power_w, work.host_power_w,
                 planner.baseline().time_s, planner.baseline().energy_j, planner.least_time_s(),
                 planner.cheapest_time_s()});
  return table;
}

std::string title_of(const PipelineResult& plan) {
  return fmt::format("plan for {:.5g} s", plan.deadline_s);
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
                    const std::vector<PipelineResult>& plans, const ShownRun& shown) {
  const PipelineWork& work = planner.work();
  if (o.line.timeline.empty()) return;
  if (o.line.timeline.ends_with(".json")) return write_timeline(o, work, plans);
  if (o.line.timeline.ends_with(".svg")) {
    std::vector<DrawnRun> drawn{{baseline_name(o.input), &planner.baseline()}};
    for (const PipelineResult& plan : plans) {
      if (plan.found()) drawn.push_back({title_of(plan), &plan.run});
    }
    return write_output(o.line.timeline, gantt_svg(work, drawn));
  }
  write_output(o.line.timeline,
               pipeline_page(planner, plans,
                             {describe(o.input, work), baseline_name(o.input),
                              shown.rests_on + '\n' + notes_text(shown), doubts_of(shown)},
                             plans_table(shown)));
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
    throw UsageError("--list kernels: a profile holds times of passes, not of kernels");
  if (!o.line.db.empty()) check_storable(loaded.work);
  if (is_folder(o.line.plan_file) && per_kernel && o.input.clock_per == "kernel") {
    throw UsageError("Zeus sets one clock per pass; this plan has one per kernel",
                     {.in = {},
                      .hint = "--plan-file plan.json writes it, or plan with --granularity "
                              "microbatch"});
  }
}

// The plan of each goal, in their order.
std::vector<PipelineResult> plans_for(const AskedStages& o, const LoadedPipeline& loaded,
                                      const PipelinePlanner& planner, const PlannerOptions& options,
                                      const RunContext& context) {
  const auto intervals = intervals_of(loaded, options.switching);
  const auto verdict = [&](const PipelineResult& plan) {
    return verdict_of(loaded, plan, options.switching);
  };
  std::vector<PipelineResult> by_deadline =
      plan_with_odds(planner, intervals ? &*intervals : nullptr, options.deadlines_s,
                     o.line.questions.odds_pct / percent, context);
  std::vector<PipelineResult> plans;
  auto next = by_deadline.begin();
  for (const Goal& goal : o.goals) {
    const bool by_time = std::holds_alternative<LeastWaste>(goal);
    PipelineResult& plan = plans.emplace_back(
        by_time ? std::move(*next++) : plan_of_goal(planner, goal, verdict, context));
    if (!plan.found()) continue;
    if (!by_time && intervals) plan.interval = intervals->of(plan.plan);
    plan.verdict = verdict(plan);
    plan.fitted = !has_mark(marks_of(loaded, plan.plan), MarkKind::clocks_not_fitted);
  }
  return plans;
}

}  // namespace

ExitStatus explore_stages(const ExploreOptions& line, const RunContext& context) {
  const AskedStages o{.line = line,
                      .input = input_of(line),
                      .goals = goals_of(line.questions),
                      .jitter_frac = jitter_of(line.disturb)};
  if (!o.line.db.empty()) (void)open_result_database(o.line.db);  // better known before the work
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  check_outputs(o, loaded);
  PlannerOptions options = planner_options(o.input);
  const double baseline_s = simulate(work, highest_clocks(work)).time_s;
  for (const double slack_pct : o.input.slacks_pct)
    options.deadlines_s.push_back(baseline_s * (1.0 + slack_pct / percent));
  give_parts();
  const TimeLimit limit(line.limits.time_s, context);
  const PipelinePlanner planner(work, options, limit.context());
  const std::vector<PipelineResult> plans = plans_for(o, loaded, planner, options, limit.context());
  const ShownRun shown = shown_run(o.input, loaded, planner, plans, o.jitter_frac,
                                   o.line.questions.odds_pct / percent, line.db, line.plan_file);
  print_exploration(
      shown, about_table(o.input, planner),
      std::array{
          ListedTable{"passes", [&] { return passes_table(work, plans); }},
          ListedTable{"kernels", [&] { return kernels_table(work, plans, loaded.kernel_clocks); }}},
      line.lists, line.format);
  // First, so that a file that cannot be written loses nothing. Parts cannot be stored as such.
  if (!o.line.db.empty() && !is_part())
    store_pipeline(o.line.db, planner, plans, o.input, loaded, context);
  write_timeline(o, planner, plans, shown);
  write_plans(o, planner, plans, loaded, context);
  return std::ranges::any_of(plans, &PipelineResult::found) ? ExitStatus::done
                                                            : ExitStatus::no_plan;
}

}  // namespace rubato
