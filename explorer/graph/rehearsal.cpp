#include "explorer/graph/rehearsal.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "explorer/graph/playing.hpp"
#include "explorer/plan/defaults.hpp"

namespace rubato {

namespace {

bool ends_by(const GraphRun& run, double deadline_s) {
  constexpr double rounding = 1e-9;  // as planners count
  return run.span_s <= deadline_s * (1.0 + rounding);
}

CountedChanges counted_changes(const GraphPlanResult& result, const GraphRun& run,
                               const GraphRun& baseline) {
  CountedChanges counted{.change = change_against(run, baseline),
                         .in_time = ends_by(run, result.deadline_s)};
  for (const GpuTotals& gpu : run.gpus) {
    counted.clock_changes += gpu.clock_changes;
    counted.late_launches += gpu.late_launches;
    counted.stalled_s += gpu.stalled_s;
  }
  return counted;
}

bool saves_more(const GraphPlanOutcome& a, const GraphPlanOutcome& b) {
  return !b.counted || a.counted->change.energy_frac < b.counted->change.energy_frac;
}

GraphPlanResult without_plan(GraphPlanResult result) {
  result.plan = {};
  result.run = {};
  result.gap_frac = 0.0;
  result.status = SolveStatus::infeasible;
  return result;
}

// Segments of a GPU stand together.
bool changes_clocks(std::span<const PlanSegment> segments) {
  return std::ranges::adjacent_find(segments, [](const PlanSegment& a, const PlanSegment& b) {
           return a.gpu == b.gpu && a.clock != b.clock;
         }) != segments.end();
}

// "rank 2", or of several GPUs of a process "rank 2, GPU 1"; empty for a single one.
std::string label_of(const ExecutionGraph& graph, const GraphGpu& gpu) {
  if (graph.gpus().size() == 1) return "";
  const bool alone = std::ranges::count(graph.gpus(), gpu.rank, &GraphGpu::rank) == 1;
  return alone ? fmt::format("rank {}", gpu.rank)
               : fmt::format("rank {}, GPU {}", gpu.rank, gpu.device);
}

}  // namespace

PlanChange change_against(const GraphRun& run, const GraphRun& baseline) {
  return {run.span_s / baseline.span_s - 1.0, run.total_energy_j / baseline.total_energy_j - 1.0};
}

GraphPlanOutcome Rehearsal::played(GraphPlanResult result) {
  GraphPlanOutcome outcome;
  outcome.result = std::move(result);
  const GraphPlanResult& plan = outcome.result;
  if (!plan.found()) return outcome;
  const GraphRun run = simulator_.run(plan.plan, {.phases = true, .switching = plan.switching});
  outcome.segments = plan_segments(model_, run);
  if (!planner_.switching()) return outcome;
  std::vector<AppliedTarget> targets;
  for (const GraphGpu& gpu : model_.graph().gpus()) {
    AppliedTarget& target = targets.emplace_back(AppliedTarget{label_of(model_.graph(), gpu), {}});
    for (const StepStretch& one : played_step(outcome.segments, id_at<GpuId>(targets.size() - 1)))
      target.step.push_back({.time_s = one.time_s, .clock = planner_.grid()[one.clock]});
  }
  outcome.verdict = applicable(targets, switching_in_earnest(*planner_.switching(), model_.spec()));
  outcome.counted = counted_changes(
      plan, changes_clocks(outcome.segments) ? play(outcome, run).run : run, planner_.baseline());
  return outcome;
}

PlayedRun Rehearsal::play(const GraphPlanOutcome& plan, const GraphRun& start) {
  // What cannot be set changes clocks too often for its times ever to settle.
  constexpr int to_settle = 6, at_once = 1;
  std::vector<StepScore> scores;
  for (std::size_t g = 0; g < model_.graph().gpus().size(); ++g)
    scores.emplace_back(played_step(plan.segments, id_at<GpuId>(g)));
  return rubato::play(model_, simulator_, scores, planner_.grid().default_clock(),
                      *planner_.switching(), start, plan.verdict.applicable ? to_settle : at_once);
}

void Rehearsal::set_as_played(GraphPlanOutcome& outcome) {
  GraphPlanResult& result = outcome.result;
  if (!outcome.counted || !result.found()) return;
  const GraphRun planned =
      simulator_.run(result.plan, {.phases = true, .switching = result.switching});
  result.plan = play(outcome, planned).plan;
  result.switching = *planner_.switching();
  result.run = simulator_.run(result.plan, {.phases = true, .switching = result.switching});
  const ExecutionGraph& graph = model_.graph();
  std::vector<std::vector<const GpuPhase*>> phases(graph.gpus().size());
  for (const GpuPhase& phase : result.run.phases) phases[index(phase.gpu)].push_back(&phase);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const std::optional<GpuId> gpu = graph.gpu_of(graph.activities()[i]);
    if (!gpu || phases[index(*gpu)].empty()) continue;
    const auto& own = phases[index(*gpu)];
    const auto after = std::ranges::upper_bound(own, result.run.start_s[i], {}, &GpuPhase::start_s);
    result.plan.clock_of_activity[i] = (after == own.begin() ? own.front() : *(after - 1))->clock;
  }
  result.run.phases = {};
  result.gap_frac = std::max(1.0 - result.lower_bound_j / result.run.total_energy_j, 0.0);
}

// Whether a plan ends in time as it is played, and GPUs can be set to it. Where changes are taken
// as free, everything can be set.
bool Rehearsal::holds(const GraphPlanOutcome& one) const {
  return one.counted && one.counted->in_time &&
         (one.verdict.applicable || planner_.switching()->is_free());
}

// @param best  holds, or is nothing
void Rehearsal::keep_if_better(GraphPlanOutcome& best, GraphPlanOutcome other) const {
  if (holds(other) && saves_more(other, best)) best = std::move(other);
}

GraphPlanOutcome Rehearsal::in_time(GraphPlanOutcome given,
                                    std::span<const GraphPlanOutcome* const> known,
                                    const RunContext& context) {
  if (!given.counted) return given;
  const GraphQuestion& question = given.result.question;
  known_.clear();
  for (const GraphPlanOutcome* one : known) {
    if (planner_.looks_at(question, one->result.question)) known_.push_back(one);
  }
  GraphPlanOutcome best = best_known(given.result, context);
  if (holds(given) && saves_more(given, best)) return given;
  if (!given.counted->in_time) tighten(question, *given.counted, given.result, best, context);
  if (best.counted) return best;
  GraphPlanOutcome none;  // late as played, and so is all else
  none.result = without_plan(std::move(given.result));
  if (context.stop_requested()) none.result.status = SolveStatus::time_limit;
  return none;
}

// Asks for plans for less time. It halves the slack between one whose plan is late when played and
// one whose plan is in time, or that has no plan.
// @param late  what the question's own plan comes to
// @param best  in time, or nothing; replaced by a plan in time that saves more
void Rehearsal::tighten(const GraphQuestion& question, const CountedChanges& late,
                        const GraphPlanResult& asked, GraphPlanOutcome& best,
                        const RunContext& context) {
  constexpr int tries = 6;
  constexpr double reserve = 1.25;     // times what a plan is late by
  constexpr double least_step = 0.25;  // times what the first one is late by
  const double slack_frac = asked.question.slack_frac;
  const double first_by_frac = late.change.time_frac - slack_frac;
  double late_frac = question.slack_frac, by_frac = first_by_frac;
  std::optional<double> early_frac;
  for (int i = 0; i < tries && !context.stop_requested(); ++i) {
    GraphQuestion tighter = question;
    tighter.slack_frac = early_frac
                             ? 0.5 * (*early_frac + late_frac)
                             : late_frac - std::max(reserve * by_frac, least_step * first_by_frac);
    GraphPlanOutcome outcome;
    if (tighter.slack_frac > -1.0) outcome = answered(tighter, asked, context);
    if (outcome.counted && !outcome.counted->in_time) {
      late_frac = tighter.slack_frac;
      by_frac = outcome.counted->change.time_frac - slack_frac;
      continue;
    }
    early_frac = tighter.slack_frac;
    keep_if_better(best, std::move(outcome));
  }
}

GraphPlanOutcome Rehearsal::best_known(const GraphPlanResult& asked, const RunContext& context) {
  GraphPlanOutcome best = answered({Granularity::run, asked.question.slack_frac}, asked, context);
  std::vector<const GraphPlanOutcome*> in_time;
  for (const GraphPlanOutcome* one : known_) {
    if (holds(*one)) in_time.push_back(one);
  }
  sort_by(in_time, [](const GraphPlanOutcome* one) { return one->counted->change.energy_frac; });
  // A plan made with free changes takes another time, and has other segments, where they cost.
  for (const GraphPlanOutcome* one : in_time) {
    if (!saves_more(*one, best)) break;
    keep_if_better(best, played(as_answer(one->result, asked)));
  }
  return best;
}

GraphPlanOutcome Rehearsal::answered(const GraphQuestion& question, const GraphPlanResult& asked,
                                     const RunContext& context) {
  std::vector<const GraphPlanResult*> known;
  for (const GraphPlanOutcome* one : known_) known.push_back(&one->result);
  return played(as_answer(planner_.plan_more(question, known, context), asked));
}

// A plan for another question, as an answer to the one that was asked: none if it then ends late.
GraphPlanResult Rehearsal::as_answer(GraphPlanResult plan, const GraphPlanResult& asked) {
  plan.question = asked.question;
  plan.deadline_s = asked.deadline_s;
  plan.switching = asked.switching;
  plan.lower_bound_j = asked.lower_bound_j;
  if (!plan.found()) return plan;
  plan.plan.only_main_streams_ask = true;  // as of every automatic plan
  plan.run = simulator_.run(plan.plan, {.switching = plan.switching});
  if (!ends_by(plan.run, plan.deadline_s)) return without_plan(std::move(plan));
  plan.status = SolveStatus::feasible;
  plan.gap_frac = 1.0 - std::min(asked.lower_bound_j / plan.run.total_energy_j, 1.0);
  return plan;
}

std::vector<GraphPlanOutcome> rehearsed(const GraphModel& model, GraphPlanner& planner,
                                        const GraphModel& as_captured,
                                        std::vector<GraphPlanResult> plans) {
  const GraphPlanIntervals intervals(model, as_captured, planner.grid(), planner.baseline());
  Rehearsal rehearsal(model, planner);
  std::vector<GraphPlanOutcome> outcomes;
  for (GraphPlanResult& plan : plans) {
    GraphPlanOutcome& one = outcomes.emplace_back(rehearsal.played(std::move(plan)));
    one.change = change_against(one.result.run, planner.baseline());
    one.interval = intervals.of(one.result.plan, one.result.run);
  }
  return outcomes;
}

}  // namespace rubato
