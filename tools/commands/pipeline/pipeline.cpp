// rubato pipeline: clocks for every pass of pipeline-parallel training.

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/results/stage_rows.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

PlannerOptions planner_options(const PipelineInput& input) {
  PlannerOptions options;
  options.switching = switch_model(input);
  return options;
}

void print_with_notes(const OutputTable& table, const std::string& notes, OutputFormat format) {
  print(table, format);
  if (format == OutputFormat::table) print_notes(notes);
}

void print_answered(const std::string& question, std::string_view answer, const OutputTable& table,
                    const std::string& notes, OutputFormat format) {
  if (format == OutputFormat::table) print_notes(answer_text(question, answer));
  print_with_notes(table, notes, format);
}

std::optional<std::string> no_interval(const LoadedPipeline& loaded) {
  if (!loaded.modelled) return "a measured profile does not say how noisy it is";
  return std::nullopt;
}

std::optional<PipelineIntervals> intervals_of(const LoadedPipeline& loaded,
                                              const SwitchModel& switching) {
  if (no_interval(loaded)) return std::nullopt;
  return std::optional<PipelineIntervals>(std::in_place, *loaded.modelled, loaded.kernel_clocks,
                                          loaded.work, switching);
}

std::optional<Interval> energy_interval(const std::optional<PipelineIntervals>& intervals,
                                        const PipelinePlan& plan,
                                        const PipelineIntervalQuestion& question) {
  if (!intervals || plan.option_of_pass.empty()) return std::nullopt;
  return intervals->of(plan, question).energy;
}

void add_interval(std::vector<Cell>& row, const std::optional<Interval>& interval) {
  if (!interval) {
    row.resize(row.size() + 3);
    return;
  }
  row.insert(row.end(), {interval->low_pct, interval->high_pct,
                         range_cell(interval->low_pct, interval->high_pct)});
}

Column range_column(bool shown, std::string title) {
  return {.key = "range",
          .title = std::move(title),
          .for_programs = !shown,
          .room = Room::detail,
          .for_people = true,
          .whole = true};
}

std::vector<Mark> marks_of(const LoadedPipeline& loaded, const PipelinePlan& plan) {
  std::vector<Mark> marks = loaded.marks;
  if (loaded.modelled) {
    std::ranges::move(
        marks_of_clocks(loaded.modelled->spec, loaded.kernel_clocks, loaded.work, plan),
        std::back_inserter(marks));
  }
  return marks;
}

PlanVerdict verdict_of(const LoadedPipeline& loaded, const PipelineResult& result,
                       const SwitchModel& switching) {
  const GpuSpec spec = loaded.modelled ? loaded.modelled->spec : GpuSpec{};
  return applicable(loaded.work, result.plan, result.run, loaded.kernel_clocks,
                    switching_in_earnest(switching, spec));
}

std::string refusal_note(std::span<const PipelineResult> plans) {
  for (const PipelineResult& plan : plans) {
    if (!plan.verdict.applicable)
      return fmt::format("{}: {}.\n", name_of(MarkKind::not_applicable), plan.verdict.because);
  }
  return "";
}

std::string marks_note(const LoadedPipeline& loaded, std::span<const PipelinePlan* const> plans) {
  std::vector<std::vector<Mark>> marks{marks_of(loaded, highest_clocks(loaded.work))};
  for (const PipelinePlan* plan : plans) marks.push_back(marks_of(loaded, *plan));
  std::vector<const std::vector<Mark>*> lists;
  for (const std::vector<Mark>& of : marks) lists.push_back(&of);
  return reasons_text(lists);
}

std::string interval_note(const LoadedPipeline& loaded,
                          std::span<const PipelinePlan* const> plans) {
  if (const auto why = no_interval(loaded))
    return marks_note(loaded, plans) + fmt::format("No interval: {}.\n", *why);
  return marks_note(loaded, plans) +
         "90 %: interval of the change before it when the plan is run, replayed with errors of the "
         "kernel model.\n";
}

bool has_power_limits(const PipelineWork& work) {
  return std::ranges::any_of(work.types, [](const PassType& type) {
    return std::ranges::any_of(
        type.options, [](const ClockOption& option) { return option.power_limit_w > 0.0; });
  });
}

void check_storable(const PipelineWork& work) {
  for (const PassType& type : work.types) {
    if (std::ranges::find(type.options, 0.0, &ClockOption::energy_j) == type.options.end())
      continue;
    throw UsageError(fmt::format("--db holds measured energies; {} of stage {} has one of 0 J",
                                 name_of(type.kind), type.stage),
                     {.in = {}, .hint = "--plan-file writes such plans"});
  }
}

std::string multiply_note(const PipelineInput& input, const PipelineWork& work) {
  const std::uint32_t pipelines = input.tensor_parallel * input.data_parallel;
  if (pipelines == 1) return "";
  return fmt::format(
      "Energies are of one pipeline with one GPU per stage; all {} GPUs (tensor x data parallel "
      "{} x {}) use {} times as much.\n",
      work.schedule.shape.stages * pipelines, input.tensor_parallel, input.data_parallel,
      pipelines);
}

PipelineRecord record_of(const PipelineInput& input, const LoadedPipeline& loaded,
                         const std::string& command) {
  PipelineRecord record{.command = command,
                        .profile = profile_name(input),
                        .switching = switch_model(input),
                        .tensor_parallel = input.tensor_parallel,
                        .data_parallel = input.data_parallel,
                        .marks = [&](const PipelinePlan& plan) { return marks_of(loaded, plan); }};
  if (loaded.modelled) {
    record.spec = loaded.modelled->spec;
    record.grid = grid_name(loaded.modelled->spec, loaded.modelled->grid);
  }
  return record;
}

std::int64_t store_pipeline(const std::string& db, const PipelinePlanner& planner,
                            const std::vector<PipelineResult>& plans, const PipelineInput& input,
                            const LoadedPipeline& loaded, const RunContext& context) {
  const std::int64_t run_id =
      add_pipeline(db, planner, plans, record_of(input, loaded, context.command_line));
  tell("stored as run {} in {}\n", run_id, db);
  return run_id;
}

Action setup_pipeline(CommandLine& app) {
  static constexpr std::array choices{
      Command{"describe", "Write a pipeline as a file for 'rubato explore'",
              &setup_pipeline_describe},
      Command{"front", "Show the whole frontier of time and energy", &setup_pipeline_front},
      Command{"straggle", "What the other pipelines save while one is slow",
              &setup_pipeline_straggle},
      Command{"scale", "Savings when more replicas share a batch (strong scaling)",
              &setup_pipeline_scale},
      Command{"compare", "Compare plans with those of other methods", &setup_pipeline_compare},
      Command{"latency-scan", "How much of a saving remains when switching clocks takes longer",
              &setup_pipeline_latency_scan},
      Command{"profile", "Make a profile of stages from the captured ranks of a pipeline",
              &setup_pipeline_profile}};
  return one_of(app, choices);
}

}  // namespace rubato
