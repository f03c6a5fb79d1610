#include "explorer/graph/exploration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/numbers.hpp"
#include "explorer/graph/playing.hpp"

namespace rubato {

namespace {

GraphCoverage coverage_of(const GraphModel& model) {
  GraphCoverage coverage;
  for (const Activity& activity : model.graph().activities()) {
    if (activity.kind != ActivityKind::launch) continue;
    switch (model.split(activity.kernel)) {
      case SplitSource::fit: coverage.measured_s += activity.duration_s; break;
      case SplitSource::counters:
      case SplitSource::work: coverage.anchored_s += activity.duration_s; break;
      case SplitSource::class_prior:
        coverage.anchored_s += activity.duration_s;
        coverage.guessed_split_s += activity.duration_s;
        break;
      case SplitSource::link: coverage.fixed_s += activity.duration_s; break;
    }
  }
  return coverage;
}

PlanChange change(const GraphRun& run, const GraphRun& reference) {
  return {run.span_s / reference.span_s - 1.0, run.total_energy_j / reference.total_energy_j - 1.0};
}

// The same plans on the same run, its kernels' times split another way.
class OtherSplit {
 public:
  OtherSplit(const GraphModel& model, const ClockGrid& grid, double lean)
      : model_(model.with_split(lean)),
        simulator_(model_, grid),
        baseline_(simulator_.run(uniform_plan(model.graph(), grid.default_clock()))) {}

  [[nodiscard]] PlanChange change_of(const GraphPlanResult& result) {
    return change(simulator_.run(result.plan, {.switching = result.switching}), baseline_);
  }

 private:
  GraphModel model_;
  GraphSimulator simulator_;
  GraphRun baseline_;
};

CountedChanges counted_changes(const GraphPlanResult& result, const GraphRun& run,
                               const GraphRun& baseline) {
  constexpr double rounding = 1e-9;  // as planners count
  CountedChanges counted{.change = change(run, baseline),
                         .in_time = run.span_s <= result.deadline_s * (1.0 + rounding)};
  for (const GpuTotals& gpu : run.gpus) {
    counted.clock_changes += gpu.clock_changes;
    counted.late_launches += gpu.late_launches;
    counted.stalled_s += gpu.stalled_s;
  }
  return counted;
}

// Plans as they are played.
class Rehearsal {
 public:
  Rehearsal(const GraphExploration& of, const std::optional<SwitchModel>& switching)
      : of_(of), switching_(switching), simulator_(*of.model, of.planner->grid()) {}

  GraphPlanOutcome played(GraphPlanResult result) {
    GraphPlanOutcome outcome;
    outcome.result = std::move(result);
    const GraphPlanResult& plan = outcome.result;
    if (!plan.found()) return outcome;
    const GraphRun run = simulator_.run(plan.plan, {.phases = true, .switching = plan.switching});
    outcome.segments = plan_segments(*of_.model, run);
    if (!switching_) return outcome;
    std::vector<StepScore> scores;
    for (std::size_t g = 0; g < of_.run->graph.gpus().size(); ++g)
      scores.emplace_back(played_step(outcome.segments, id_at<GpuId>(g)));
    const PlayedRun played =
        play(*of_.model, simulator_, scores, of_.planner->grid().default_clock(), *switching_, run);
    outcome.counted = counted_changes(plan, played.run, of_.planner->baseline());
    return outcome;
  }

  // Steps differ: clocks that just fit one are late in others. Then plans are made for somewhat
  // less time, as much less as is needed, and, where none of them saves anything, with changes
  // farther apart, which steps that differ meet better.
  // @param given  automatic
  // @return what saves most of those that are in time, plans before it and one clock for all
  //         included; the given one if there are none
  GraphPlanOutcome in_time(GraphPlanOutcome given, const RunContext& context) {
    // Of a step: where steps differ, so do the shares of their time at which clocks change.
    constexpr std::array<double, 2> apart_frac{0.02, 0.1};
    if (!given.counted) return given;
    GraphQuestion question = given.result.question;
    GraphPlanOutcome best = best_before(given.result, context);
    if (given.counted->in_time && saves_more(given, best)) return given;
    bool better =
        !given.counted->in_time && tighten(question, *given.counted, given.result, best, context);
    std::set<std::optional<std::uint32_t>> steps;
    for (const PlanSegment& segment : given.segments) steps.insert(segment.step);
    const double step_s = of_.planner->baseline().span_s /
                          static_cast<double>(std::max<std::size_t>(steps.size(), 1));
    for (const double frac : apart_frac) {
      question.dwell_s = frac * step_s;
      if (better || question.dwell_s <= switching_->dwell_s || context.stop_requested()) break;
      GraphPlanOutcome outcome = answered(question, given.result, context);
      if (!outcome.counted) break;
      if (!outcome.counted->in_time) {
        better = tighten(question, *outcome.counted, given.result, best, context);
      } else if (saves_more(outcome, best)) {
        best = std::move(outcome);
        better = true;
      }
    }
    return best.counted ? best : given;
  }

 private:
  static bool saves_more(const GraphPlanOutcome& a, const GraphPlanOutcome& b) {
    return !b.counted || a.counted->change.energy_frac < b.counted->change.energy_frac;
  }

  // Asks for plans in less time, between one that is late and one that is not, or is none.
  // @param late  what the question's own plan comes to
  // @param best  in time, or nothing; replaced by what saves more
  // @return whether it was
  bool tighten(const GraphQuestion& question, const CountedChanges& late,
               const GraphPlanResult& asked, GraphPlanOutcome& best, const RunContext& context) {
    constexpr int tries = 6;
    constexpr double reserve = 1.25;     // of what a plan is late by
    constexpr double least_step = 0.25;  // of what the first one is late by
    const double slack_frac = asked.question.slack_frac;
    const double first_by_frac = late.change.time_frac - slack_frac;
    double late_frac = question.slack_frac, by_frac = first_by_frac;
    std::optional<double> early_frac;
    bool better = false;
    for (int i = 0; i < tries && !context.stop_requested(); ++i) {
      GraphQuestion tighter = question;
      tighter.slack_frac =
          early_frac ? 0.5 * (*early_frac + late_frac)
                     : late_frac - std::max(reserve * by_frac, least_step * first_by_frac);
      GraphPlanOutcome outcome;
      if (tighter.slack_frac > -1.0) outcome = answered(tighter, asked, context);
      if (outcome.counted && !outcome.counted->in_time) {
        late_frac = tighter.slack_frac;
        by_frac = outcome.counted->change.time_frac - slack_frac;
        continue;
      }
      early_frac = tighter.slack_frac;
      if (!outcome.counted || !saves_more(outcome, best)) continue;
      best = std::move(outcome);
      better = true;
    }
    return better;
  }

  GraphPlanOutcome best_before(const GraphPlanResult& asked, const RunContext& context) {
    GraphPlanOutcome best =
        answered({GraphGrain::iteration, asked.question.slack_frac}, asked, context);
    for (const GraphPlanOutcome& one : of_.plans) {
      if (!one.counted || !one.counted->in_time || one.result.deadline_s > asked.deadline_s)
        continue;
      if (saves_more(one, best)) best = played(as_answer(one.result, asked));
    }
    return best;
  }

  GraphPlanOutcome answered(const GraphQuestion& question, const GraphPlanResult& asked,
                            const RunContext& context) {
    return played(as_answer(of_.planner->plan(std::span(&question, 1), context).front(), asked));
  }

  // A plan for another question, as one for what was asked.
  GraphPlanResult as_answer(GraphPlanResult plan, const GraphPlanResult& asked) {
    plan.question = asked.question;
    plan.deadline_s = asked.deadline_s;
    plan.switching = asked.switching;
    plan.lower_bound_j = asked.lower_bound_j;
    if (!plan.found()) return plan;
    plan.run = simulator_.run(plan.plan, {.switching = plan.switching});
    plan.status = SolveStatus::feasible;
    plan.gap_frac = 1.0 - std::min(asked.lower_bound_j / plan.run.total_energy_j, 1.0);
    return plan;
  }

  const GraphExploration& of_;
  std::optional<SwitchModel> switching_;
  GraphSimulator simulator_;
};

std::vector<Mark> marks_of_clocks(const GraphModel& model, const ClockGrid& grid,
                                  const GraphPlan& plan, const GraphRun& run) {
  const ExecutionGraph& graph = model.graph();
  std::map<std::tuple<KernelId, ThrottleId, ClockId>, double> time_s;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (model.work()[i] <= 0.0) continue;
    const Activity& launch = graph.activities()[i];
    time_s[{launch.kernel, model.throttle_of(*graph.gpu_of(launch)), plan.clock_of_activity[i]}] +=
        run.end_s[i] - run.start_s[i];
  }
  ClockMarks marks(model.spec(), model.power_limit_w());
  for (const auto& [at, seconds] : time_s) {
    const auto& [kernel, throttle, clock] = at;
    marks.add(model.coefficients()[index(kernel)], model.evaluate(kernel, grid[clock], throttle),
              seconds);
  }
  return marks.marks();
}

Totals totals_of(const GraphRun& run) {
  Totals totals{.time_s = run.span_s, .energy_j = run.total_energy_j};
  for (const GpuTotals& gpu : run.gpus) totals.clock_switches += gpu.clock_changes;
  return totals;
}

// Least energy of one clock for everything by a plan's deadline.
std::optional<double> best_one_clock_j(const GraphPlanner& planner, double deadline_s) {
  std::optional<double> least_j;
  for (const UniformRun& run : planner.uniform()) {
    if (run.span_s <= deadline_s) least_j = std::min(least_j.value_or(run.energy_j), run.energy_j);
  }
  return least_j;
}

std::vector<Mark> marks_of(const GraphModel& model, const GraphPlanner& planner,
                           const GraphPlanOutcome& outcome) {
  const GraphPlanResult& result = outcome.result;
  const GraphRun& baseline = planner.baseline();
  std::vector<Mark> marks = marks_of_clocks(model, planner.grid(), result.plan, result.run);
  const Totals planned = totals_of(result.run);
  std::optional<Totals> counted;
  const bool ignores = outcome.counted && result.question.grain != GraphGrain::automatic &&
                       planned.clock_switches > 0 && !planner.switching()->is_free();
  if (ignores) {
    counted = planned;
    counted->time_s = (1.0 + outcome.counted->change.time_frac) * baseline.span_s;
    counted->energy_j = (1.0 + outcome.counted->change.energy_frac) * baseline.total_energy_j;
  }
  const Goal goal = LeastWaste{.slack_frac = result.question.slack_frac};
  std::ranges::move(marks_of_changes({goal, totals_of(baseline), planned, counted,
                                      best_one_clock_j(planner, result.deadline_s)}),
                    std::back_inserter(marks));
  const bool said = std::ranges::find(marks, MarkKind::slack_missed, &Mark::kind) != marks.end();
  if (outcome.counted && !outcome.counted->in_time && !said) {
    marks.push_back({MarkKind::slack_missed,
                     "takes longer than the slack allows as played: one step's clocks for all "
                     "steps, changes of clock counted"});
  }
  return marks;
}

}  // namespace

double GraphPlanOutcome::least(double PlanChange::*field) const {
  const double split = std::min({change.*field, core_bound.*field, mem_bound.*field});
  return (1.0 + split) * (1.0 + error.low.*field) - 1.0;
}

double GraphPlanOutcome::most(double PlanChange::*field) const {
  const double split = std::max({change.*field, core_bound.*field, mem_bound.*field});
  return (1.0 + split) * (1.0 + error.high.*field) - 1.0;
}

GraphExploration explore_captured(const GraphExplorationInput& input, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  GraphExploration found;
  found.run = std::make_unique<const CaptureGraph>(capture_graph(input.captures));
  const ExecutionGraph& graph = found.run->graph;
  found.model = std::make_unique<const GraphModel>(graph, input.spec, input.captured_clock,
                                                   input.power_limit_w);
  found.coverage = coverage_of(*found.model);
  found.captured_span_s = graph.captured_span_s();
  const ClockGrid at_capture(input.spec, {input.captured_clock});
  const GraphRun reproduced = GraphSimulator(*found.model, at_capture)
                                  .run(uniform_plan(graph, *at_capture.find(input.captured_clock)));
  found.reproduced_span_s = reproduced.span_s;
  found.reproduced_energy_j = reproduced.total_energy_j;

  const ClockGrid grid = make_clock_grid(input.spec, input.grid);
  if (!input.disturbance.none()) {
    found.undisturbed_span_s =
        GraphSimulator(*found.model, grid).run(uniform_plan(graph, grid.default_clock())).span_s;
    found.model = std::make_unique<const GraphModel>(disturbed(*found.model, input.disturbance));
  }
  found.planner = std::make_unique<GraphPlanner>(*found.model, grid, context, input.switching);
  found.baseline_marks = marks_of_clocks(
      *found.model, grid, uniform_plan(graph, grid.default_clock()), found.planner->baseline());
  OtherSplit core_bound(*found.model, grid, 1.0), mem_bound(*found.model, grid, 0.0);
  const PlanErrors errors(*found.model, grid);
  Rehearsal rehearsal(found, input.switching);
  for (GraphPlanResult& result : found.planner->plan(input.questions, context)) {
    GraphPlanOutcome outcome = rehearsal.played(std::move(result));
    if (outcome.result.question.grain == GraphGrain::automatic)
      outcome = rehearsal.in_time(std::move(outcome), context);
    if (outcome.result.found()) {
      outcome.change = change(outcome.result.run, found.planner->baseline());
      outcome.core_bound = core_bound.change_of(outcome.result);
      outcome.mem_bound = mem_bound.change_of(outcome.result);
      outcome.error = errors.of(outcome.result.plan, outcome.result.run);
      outcome.marks = marks_of(*found.model, *found.planner, outcome);
    }
    found.plans.push_back(std::move(outcome));
  }
  found.interrupted = context.stop_requested();
  found.wall_time_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

double changes_per_s(const GraphPlanResult& result) {
  std::uint64_t changes = 0;
  for (const GpuTotals& gpu : result.run.gpus) changes += gpu.clock_changes;
  return static_cast<double>(changes) / result.run.span_s;
}

}  // namespace rubato
