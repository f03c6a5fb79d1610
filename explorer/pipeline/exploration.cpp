#include "explorer/pipeline/exploration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/pipeline/intervals.hpp"
#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/shared/stage_planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/plan/refusals.hpp"

namespace rubato {

namespace {

using Clock = std::chrono::steady_clock;

TrainingStep microbatch_shape(const PipelineSplit& split) {
  TrainingStep shape = split.shape;
  if (split.microbatches == 0 || shape.batch % split.microbatches != 0) {
    throw UsageError(fmt::format("a batch of {} cannot be cut into {} equal microbatches",
                                 shape.batch, split.microbatches));
  }
  shape.batch /= split.microbatches;
  shape.data_parallel = 1;
  shape.optimizer = false;
  return shape;
}

// Turns sums over all stages into means per stage.
class PerStage {
 public:
  explicit PerStage(const PipelineSplit& split) : stages_(split.stages) {}

  [[nodiscard]] Totals of(const PipelineRun& run, std::uint64_t launches) const {
    return {.time_s = run.time_s,
            .energy_j = run.energy_j / stages_,
            .launches = launches,
            .clock_switches = run.clock_switches,
            .power_limited_launches = 0};
  }
  [[nodiscard]] double energy_j(double all_j) const { return all_j / stages_; }

  void spread(Totals& sum, std::uint32_t microbatches) const {
    sum.time_s *= microbatches / stages_;
    sum.energy_j *= microbatches / stages_;
    sum.launches *= microbatches;
    sum.power_limited_launches *= microbatches;
  }

 private:
  double stages_;
};

// Answers questions for one kind of clock inside passes: one for a whole pass, or one per kernel.
class PipelineQuestions {
 public:
  PipelineQuestions(const ExplorationInput& input, const PipelineSplit& split, PassClocks clocks,
                    const Question& question)
      : stages_(stages_of(input, split, clocks, question)),
        switching_(with_long_stretches(switching_of(input, question))),
        model_(modelled(stages_, split)),
        work_(with_host_power(pipeline_work(make_schedule({.kind = split.schedule,
                                                           .stages = split.stages,
                                                           .microbatches = split.microbatches}),
                                            model_.profile, stages_.blocked_power_w),
                              input.host_power_w)),
        planner_(work_, {.switching = switching_}),
        plans_(planner_, {.switching = switching_}, std::array{question.granularity}),
        intervals_(stages_, model_.clocks, work_, switching_),
        odds_frac_(input.odds_frac),
        per_stage_(split) {}

  [[nodiscard]] const PipelineRun& baseline() const { return planner_.baseline(); }
  [[nodiscard]] std::uint64_t passes() const { return work_.schedule.passes.size(); }

  [[nodiscard]] PlanResult answer(const Question& question) const {
    const auto start = Clock::now();
    const std::optional<double> slack_frac = allowed_frac(question);
    PlanResult result;
    result.question = question;
    const PipelineResult found =
        slack_frac ? with_odds(baseline().time_s * (1.0 + *slack_frac))
                   : std::move(plans_
                                   .plans_of_goal(
                                       of_all_stages(question.goal),
                                       [&](const PipelineResult& plan) { return verdict(plan); })
                                   .front());
    result.status = found.status;
    result.solve_time_s = seconds_since(start);
    if (!found.found()) return result;
    result.objective =
        value_of_goal(question.goal, {found.run.time_s, per_stage_.energy_j(found.energy_j)}, 1.0);
    result.lower_bound = slack_frac ? per_stage_.energy_j(found.lower_bound_j)
                                    : (1.0 - found.gap_frac) * result.objective;
    result.gap_frac = std::max(0.0, 1.0 - result.lower_bound / result.objective);
    result.sim.total = per_stage_.of(found.run, passes());
    result.interval = slack_frac ? found.interval : intervals_.of(found.plan);
    result.odds_in_time = found.odds_in_time;
    result.bolder = found.bolder;
    result.verdict = verdict(found);
    result.marks = marks_of_clocks(stages_.spec, model_.clocks, work_, found.plan);
    if (!result.verdict.applicable)
      result.marks.push_back({MarkKind::not_applicable, result.verdict.because});
    std::ranges::move(marks_of_stages(stages_, 1), std::back_inserter(result.marks));
    return result;
  }

  // Points fastest first, up to the time of least energy.
  [[nodiscard]] Front front(Granularity granularity) const {
    Front front{granularity, {}};
    for (const FrontierVertex& vertex : planner_.frontier().vertices) {
      if (vertex.time_s > planner_.cheapest_time_s()) continue;
      const double waiting_j = planner_.waiting_power_w() * vertex.time_s;
      front.points.push_back({vertex.time_s, per_stage_.energy_j(vertex.cost_j + waiting_j)});
    }
    std::ranges::reverse(front.points);
    return front;
  }

 private:
  [[nodiscard]] PipelineResult with_odds(double deadline_s) const {
    return std::move(
        plans_.plans_with_odds(&intervals_, std::array{deadline_s}, odds_frac_).front().front());
  }
  [[nodiscard]] PlanVerdict verdict(const PipelineResult& plan) const {
    return applicable(work_, plan.plan, plan.run, model_.clocks,
                      switching_in_earnest(switching_, stages_.spec));
  }

  // Budgets are of one stage, on average.
  [[nodiscard]] Goal of_all_stages(Goal goal) const {
    const double stages = work_.schedule.shape.stages;
    if (auto* time = std::get_if<LeastTime>(&goal)) {
      for (std::optional<double>* budget : {&time->max_energy_j, &time->max_average_power_w})
        if (*budget) **budget *= stages;
    }
    return goal;
  }

  static StageModelInput stages_of(const ExplorationInput& input, const PipelineSplit& split,
                                   PassClocks clocks, const Question& question) {
    std::vector<double> slacks_frac;
    if (const auto slack_frac = allowed_frac(question)) slacks_frac.push_back(*slack_frac);
    GpuSpec spec = input.spec;
    spec.power_limit.limit_w = input.power_limit_w.value_or(spec.power_limit.limit_w);
    const double blocked_power_w = model_idle_power_w(spec, input.grid);
    return {.shape = microbatch_shape(split),
            .spec = std::move(spec),
            .grid = input.grid,
            .stages = split.stages,
            .clocks = clocks,
            .blocked_power_w = blocked_power_w,
            .slacks_frac = std::move(slacks_frac),
            .microbatches = split.microbatches};
  }

  static ModelProfile modelled(const StageModelInput& stages, const PipelineSplit& split) {
    ModelProfile model = model_profile(stages);
    if (split.schedule == ScheduleKind::early_recompute) add_recompute(model.profile);
    return model;
  }

  StageModelInput stages_;
  SwitchModel switching_;
  ModelProfile model_;
  PipelineWork work_;
  PipelinePlanner planner_;
  StagePlanner plans_;
  PipelineIntervals intervals_;
  double odds_frac_;
  PerStage per_stage_;
};

}  // namespace

Trace microbatch_trace(const PipelineSplit& split) {
  return generate_training_step(microbatch_shape(split)).trace;
}

Exploration explore_pipeline(const ExplorationInput& input, const PipelineSplit& split) {
  const auto start = Clock::now();
  ExplorationInput profile = input;
  profile.questions.clear();
  Exploration found = explore(profile);
  // A GPU holds one stage of the trace.
  std::erase_if(found.baseline_marks, [](const Mark& m) { return m.kind == MarkKind::too_large; });
  const PerStage per_stage(split);
  for (auto* sums : {&found.baseline.by_pass, &found.baseline.by_kernel}) {
    for (Totals& sum : *sums) per_stage.spread(sum, split.microbatches);
  }
  for (const Question& question : input.questions) {
    refuse_unanswerable(RunKind::stages, question);
    const bool per_kernel = question.granularity == Granularity::kernel;
    const PipelineQuestions pipeline(
        input, split, per_kernel ? PassClocks::per_kernel : PassClocks::per_pass, question);
    found.baseline.total = per_stage.of(pipeline.baseline(), pipeline.passes());
    found.plans.push_back(pipeline.answer(question));
    found.fronts.push_back(pipeline.front(question.granularity));
  }
  found.wall_time_s = seconds_since(start);
  return found;
}

}  // namespace rubato
