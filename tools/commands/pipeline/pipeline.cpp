// rubato pipeline: clocks for every pass of pipeline-parallel training.

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/results/pipeline_store.hpp"
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
  print(table.render(format));
  if (format == OutputFormat::table) print(notes);
}

std::optional<PipelineIntervals> intervals_of(const LoadedPipeline& loaded,
                                              const SwitchModel& switching) {
  // Drawn models know no power limits but the spec's.
  if (!loaded.modelled || !loaded.modelled->power_limits_w.empty()) return std::nullopt;
  return std::optional<PipelineIntervals>(std::in_place, *loaded.modelled, loaded.kernel_clocks,
                                          loaded.work, switching);
}

void add_energy_interval(std::vector<Cell>& row, const std::optional<PipelineIntervals>& intervals,
                         const PipelinePlan& plan, const PipelineIntervalQuestion& question) {
  if (!intervals || plan.option_of_pass.empty()) {
    row.resize(row.size() + 2);
    return;
  }
  const Interval energy = intervals->of(plan, question).energy;
  row.emplace_back(energy.low_pct);
  row.emplace_back(energy.high_pct);
}

std::string interval_note(const std::optional<PipelineIntervals>& intervals) {
  if (!intervals) return "";
  return "low and high: 90 % interval of the change beside them when the plan is run, replayed "
         "with "
         "errors of the kernel model.\n";
}

std::string multiply_note(const PipelineInput& input, const PipelineWork& work) {
  const std::uint32_t gpus =
      work.schedule.shape.stages * input.tensor_parallel * input.data_parallel;
  return fmt::format(
      "Energies are of one pipeline with one GPU per stage; all {} GPUs (tensor x data parallel "
      "{} x {}) use {} times as much.\n",
      gpus, input.tensor_parallel, input.data_parallel,
      input.tensor_parallel * input.data_parallel);
}

void store_pipeline(const std::string& db, const PipelinePlanner& planner,
                    const std::vector<PipelineResult>& plans, const PipelineInput& input,
                    const RunContext& context) {
  const std::int64_t run_id =
      add_pipeline(db, planner, plans,
                   {context.command_line, profile_name(input), switch_model(input).core,
                    input.tensor_parallel, input.data_parallel});
  tell("stored as pipeline run {} in {}\n", run_id, db);
}

Action setup_pipeline(CommandLine& app) {
  return one_of(app, {&setup_pipeline_plan, &setup_pipeline_front, &setup_pipeline_straggle,
                      &setup_pipeline_scale, &setup_pipeline_compare, &setup_pipeline_sweep_latency,
                      &setup_pipeline_profile});
}

}  // namespace rubato
