// Plans of a pipeline where changes of clock cost.

#include <algorithm>
#include <array>

#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/planner.hpp"

namespace rubato {

namespace {

// Where changes of clock take time, passes have less of it. So prices of time are also taken of
// deadlines that are shorter by these shares.
constexpr std::array shorter_for_switching{0.0, 1e-3, 3e-3, 6e-3, 0.01, 0.02, 0.04, 0.08, 0.15};

}  // namespace

// Searches run by run from the plans for free changes and from the plans that are best at prices of
// time. Some are made with whole latencies waited out: these end in time with requests ahead, too.
// Raises the results' bounds to what follows from the prices.
std::vector<PipelinePlanner::SwitchingAnswer> PipelinePlanner::answer_switching(
    std::span<const Question> questions, std::span<PipelineResult> results,
    const SwitchModel& switching, const RunContext& context) const {
  const StageClocks clocks(work_, switching);
  const StageClocks waiting(work_, as_stalls(switching));
  const bool ahead = switching.may_delay();
  const std::size_t count = shorter_for_switching.size();
  const std::vector<std::optional<PipelinePlan>> unswitched = answer(questions, context);
  std::vector<double> times_s;
  for (const Question& question : questions) {
    for (const double share : shorter_for_switching)
      times_s.push_back(std::max(question.target_s * (1.0 - share), least_time_s_));
  }
  const auto swept = durations(std::move(times_s), context);
  if (!swept) return std::vector<SwitchingAnswer>(questions.size());
  std::vector<std::array<StagePlan, 2>> priced;
  std::vector<PriceLine> lines;
  for (const FrontierPlan& prices : *swept) {
    PricedPlan runs = price_runs(clocks, prices);
    lines.push_back({runs.least_j, runs.price_w});
    priced.push_back(
        {std::move(runs.plan), ahead ? price_runs(waiting, prices).plan : StagePlan{}});
  }
  std::vector<SwitchingAnswer> answers;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const RunQuestion question{
        .target_s = questions[i].target_s,
        .limit_s = questions[i].limit_s,
        .price_w = 2.0 * std::max((*swept)[i * count].price_w, waiting_power_w()),
        .waiting_w = questions[i].after_end == AfterEnd::wait ? 0.0 : waiting_power_w(),
        .can_be_set = [&](const StagePlan& plan) {
          const PipelinePlan options = clocks.plan(plan);
          return can_be_set(options, simulate(work_, options, {.switching = options_.switching}));
        }};
    const auto starts = [&](std::size_t way) {
      std::vector<StagePlan> list{clocks.stage_plan(highest_clocks(work_))};
      if (unswitched[i]) list.push_back(clocks.stage_plan(*unswitched[i]));
      for (std::size_t k = i * count; k < (i + 1) * count; ++k) list.push_back(priced[k][way]);
      return list;
    };
    FoundRuns found = search_runs(clocks, question, starts(0), context);
    if (ahead) {
      std::vector<StagePlan> more = starts(1);
      FoundRuns waited = search_runs(waiting, question, more, context);
      if (waited.plan) more.push_back(*std::move(waited.plan));
      const FoundRuns other = search_runs(clocks, question, more, context);
      found.plan = cheapest_of(clocks, question.waiting_w, found.plan, other.plan);
      found.refused |= waited.refused || other.refused;
    }
    answers.push_back(
        {found.plan ? std::optional(clocks.plan(*found.plan)) : std::nullopt, found.refused});
    // With changes of clock, useful times may be longer than the frontier's slowest one. So many
    // times that one is beyond all of them.
    const double reach = 1e3;
    results[i].lower_bound_j =
        std::max(results[i].lower_bound_j,
                 bound_j(questions[i].limit_s, questions[i].after_end, lines, reach));
  }
  return answers;
}

bool PipelinePlanner::can_be_set(const PipelinePlan& plan, const PipelineRun& run) const {
  const SwitchModel& switching = options_.switching;
  return switching.is_free() || applicable(work_, plan, run, {}, switching).applicable;
}

// Replays the answers. A dwell alone leaves short stretches: where plans could not be set, those
// with longer ones are searched too.
void PipelinePlanner::hold_longer(std::span<const Question> questions,
                                  std::vector<SwitchingAnswer> answers,
                                  std::span<PipelineResult> results,
                                  const RunContext& context) const {
  const auto take = [&](PipelineResult& result, const SwitchingAnswer& answer) {
    if (answer.plan) result = cheaper_of(std::move(result), *answer.plan);
  };
  for (std::size_t i = 0; i < answers.size(); ++i) take(results[i], answers[i]);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i].refused) open.push_back(i);
  SwitchModel longer = options_.switching;
  for (int tries = 0; tries < 3 && !open.empty(); ++tries) {
    if (context.stop_requested()) return;
    longer.dwell_s *= 2.0;
    std::vector<Question> asked;
    std::vector<PipelineResult> unused;
    for (const std::size_t i : open) {
      asked.push_back(questions[i]);
      unused.push_back(results[i]);
    }
    answers = answer_switching(asked, unused, longer, context);
    std::vector<std::size_t> again;
    for (std::size_t k = 0; k < open.size(); ++k) {
      take(results[open[k]], answers[k]);
      if (answers[k].refused) again.push_back(open[k]);
    }
    open = std::move(again);
  }
}

}  // namespace rubato
