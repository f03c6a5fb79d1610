#include "tools/commands/pipeline/plan_setting.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/process/interruption.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"

namespace rubato {

namespace {

// The answer, then coarser plans of the same time, the finest first, then those of its granularity
// with more time; where none can be set, the first that was found.
std::vector<const PipelineResult*> plans_of_file(const PipelinePlanner& planner,
                                                 const std::vector<PipelineResult>& plans) {
  const Answers<PipelineResult> answers = answers_of(planner, plans);
  const PlanAnswer* named = answers.headline();
  const auto first = std::ranges::find_if(plans, &PipelineResult::found);
  const bool some_can = std::ranges::any_of(
      plans, [](const PipelineResult& plan) { return plan.found() && plan.verdict.applicable; });
  const bool keeps_default = some_can && named != nullptr && !named->plan;
  if (keeps_default && !is_part()) {
    throw NoPlanError("no plan saves enough: keep the default clocks",
                      {.in = {}, .hint = "--slack with one number asks for a plan with more time"});
  }
  std::vector<const PipelineResult*> chosen{
      some_can && named != nullptr && !keeps_default ? answers.plan(*named) : &*first};
  const PipelineResult& answer = *chosen.front();
  std::vector<const PipelineResult*> coarser, slower;
  for (const PipelineResult& plan : plans) {
    if (!plan.found() || !plan.verdict.applicable || plan.goal || answer.goal) continue;
    if (plan.deadline_s == answer.deadline_s && plan.granularity < answer.granularity)
      coarser.push_back(&plan);
    if (plan.deadline_s > answer.deadline_s && plan.granularity == answer.granularity)
      slower.push_back(&plan);
  }
  std::ranges::stable_sort(coarser, std::greater<>{}, &PipelineResult::granularity);
  std::ranges::stable_sort(slower, {}, &PipelineResult::deadline_s);
  chosen.insert(chosen.end(), coarser.begin(), coarser.end());
  chosen.insert(chosen.end(), slower.begin(), slower.end());
  return chosen;
}

PlanFile file_of(const PipelineInput& input, const PipelinePlanner& planner,
                 const std::vector<const PipelineResult*>& plans, const LoadedPipeline& loaded,
                 const std::string& command) {
  const std::optional<GpuSpec> spec = spec_of(input, loaded);
  PlanFileRun run{.work = profile_name(input),
                  .command = command,
                  .tensor_parallel = input.tensor_parallel,
                  .data_parallel = input.data_parallel};
  if (input.ops.empty()) run.schedule = name_of(planner.work().schedule.shape.kind);
  PlanFile file = pipeline_plan_file(
      {.work = planner.work(),
       .baseline = planner.baseline(),
       .kernel_clocks = loaded.kernel_clocks,
       .spec = spec ? &*spec : nullptr,
       .switching = switching_in_earnest(switch_model(input), spec.value_or(GpuSpec{})),
       .run = std::move(run)},
      plans);
  file.created_utc = now_utc();
  return file;
}

}  // namespace

PlanFile file_of_plans(const PipelineInput& input, const PipelinePlanner& planner,
                       const std::vector<PipelineResult>& plans, const LoadedPipeline& loaded,
                       const std::string& command) {
  return file_of(input, planner, plans_of_file(planner, plans), loaded, command);
}

std::string stage_lines(const PipelineInput& input, const PipelinePlanner& planner,
                        const PipelineResult& plan, const LoadedPipeline& loaded) {
  const PlanFile file = file_of(input, planner, {&plan}, loaded, "");
  const std::vector<TargetClock> targets = clock_of_each_target(file, file.plans.front());
  if (targets.empty()) return "";
  return clocks_by_target_text(*file.gpu->known, targets) + "\n " +
         clocks_by_target_lines(*file.gpu->known, targets);
}

}  // namespace rubato
