#include "explorer/graph/exploration.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "explorer/graph/goal_search.hpp"
#include "explorer/graph/rehearsal.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/plan/refusals.hpp"

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
  ClockUse use;
  for (const auto& [at, seconds] : time_s) {
    const auto& [kernel, throttle, clock] = at;
    use.add(model.spec(), model.limit_w(grid[clock], throttle), model.coefficients()[index(kernel)],
            model.evaluate(kernel, grid[clock], throttle), seconds);
  }
  return use.marks(model.spec());
}

Totals totals_of(const GraphRun& run) {
  Totals totals{.time_s = run.span_s, .energy_j = run.total_energy_j};
  for (const GpuTotals& gpu : run.gpus) totals.clock_switches += gpu.clock_changes;
  return totals;
}

// Least energy of one clock for everything by a plan's deadline; of local plans nothing.
std::optional<double> best_one_clock_j(const GraphPlanner& planner,
                                       const GraphPlanOutcome& outcome) {
  const GraphPlanResult& result = outcome.result;
  if (result.question.is_local()) return std::nullopt;
  const double deadline_s = outcome.bolder ? result.run.span_s : result.deadline_s;
  std::optional<double> least_j;
  for (const UniformRun& run : planner.uniform()) {
    if (run.span_s <= deadline_s) least_j = std::min(least_j.value_or(run.energy_j), run.energy_j);
  }
  return least_j;
}

std::vector<Mark> marks_of(const GraphExploration& found, const GraphPlanOutcome& outcome) {
  const GraphPlanResult& result = outcome.result;
  const GraphModel& model = found.model_of(outcome);
  const GraphPlanner& planner = found.planner_of(outcome);
  const GraphRun& baseline = planner.baseline();
  std::vector<Mark> marks = marks_of_clocks(model, planner.grid(), result.plan, result.run);
  if (!outcome.verdict.applicable)
    marks.push_back({MarkKind::not_applicable, outcome.verdict.because});
  const Totals planned = totals_of(result.run);
  std::optional<Totals> counted;
  const bool ignores = outcome.counted && result.question.grain != Granularity::segment &&
                       planned.clock_switches > 0 && !planner.switching()->is_free();
  if (ignores) {
    counted = planned;
    counted->time_s = (1.0 + outcome.counted->change.time_frac) * baseline.span_s;
    counted->energy_j = (1.0 + outcome.counted->change.energy_frac) * baseline.total_energy_j;
  }
  std::ranges::move(marks_of_changes({outcome.asked_goal(), totals_of(baseline), planned, counted,
                                      best_one_clock_j(planner, outcome),
                                      counted ? change_text(*planner.switching()) : ""}),
                    std::back_inserter(marks));
  const bool said = std::ranges::find(marks, MarkKind::slack_missed, &Mark::kind) != marks.end();
  if (outcome.counted && !outcome.counted->in_time && !said) {
    Mark& late = marks.emplace_back();
    late.kind = MarkKind::slack_missed;
    late.reason =
        "takes longer than the slack allows as played: one step's clocks for all steps, changes of "
        "clock counted";
  }
  return marks;
}

// Of a capture without steps 1.
double steps_of(const GraphExplorationInput& input) {
  return static_cast<double>(std::max<std::size_t>(input.captures.front().steps.size(), 1));
}

// The factor on the host's own time that makes steps as long as they are without a profiler.
double host_factor(const ExecutionGraph& graph, const GraphExplorationInput& input) {
  if (!input.step_time_s) return 1.0;
  const auto factor = host_time_factor(graph, steps_of(input) * *input.step_time_s);
  if (!factor)
    throw UsageError(
        fmt::format("a step of {} s: what the GPUs do takes longer, whatever time the host takes",
                    format_number(*input.step_time_s)),
        {.in = {},
         .hint = "give the time of one step without a profiler, at the clocks of the capture"});
  return *factor;
}

GraphModel model_of_run(const ExecutionGraph& graph, const GraphExplorationInput& input) {
  return GraphModel(graph, input.spec, input.captured_clock, input.power_limit_w)
      .with_host_power(input.host_power_w);
}

GraphExploration reproduced_run(const GraphExplorationInput& input) {
  GraphExploration found;
  CaptureGraph run = capture_graph(input.captures);
  found.host_time_factor = host_factor(run.graph, input);
  if (found.host_time_factor < 1.0) run.graph = run.graph.with_host_time(found.host_time_factor);
  found.run = std::make_unique<const CaptureGraph>(std::move(run));
  const ExecutionGraph& graph = found.run->graph;
  found.model = std::make_unique<const GraphModel>(model_of_run(graph, input));
  found.coverage = coverage_of(*found.model);
  found.captured_span_s = graph.captured_span_s();
  const ClockGrid at_capture(input.spec, {input.captured_clock});
  const GraphRun reproduced = GraphSimulator(*found.model, at_capture)
                                  .run(uniform_plan(graph, *at_capture.find(input.captured_clock)));
  found.reproduced_span_s = reproduced.span_s;
  found.reproduced_energy_j = reproduced.total_energy_j;
  return found;
}

// Whether plan a for a question is better than b. Plans that know changes of clock are compared as
// played: first in time, then energy. A difference too small to be measured is no reason to move
// collectives.
bool is_better(const GraphPlanOutcome& a, const GraphPlanOutcome& b, double odds_frac) {
  constexpr double worth_it = 1e-4;  // of the energy
  if (!a.result.found() || !b.result.found()) return a.result.found();
  if (a.odds_in_time && b.odds_in_time &&
      (*a.odds_in_time >= odds_frac) != (*b.odds_in_time >= odds_frac))
    return *a.odds_in_time >= odds_frac;
  if (a.result.question.grain == Granularity::segment && a.counted && b.counted) {
    if (a.counted->in_time != b.counted->in_time) return a.counted->in_time;
    return a.counted->change.energy_frac < b.counted->change.energy_frac - worth_it;
  }
  return a.result.run.total_energy_j < b.result.run.total_energy_j * (1.0 - worth_it);
}

// What other SMs change is a prediction too: ends move out by its worst error on measurements that
// were left out of the fit.
void widen_for_comm_sms(GraphPlanInterval& interval) {
  const auto widen = [](double& low, double& high, double error_frac) {
    low = (1.0 + low) * (1.0 - error_frac) - 1.0;
    high = (1.0 + high) * (1.0 + error_frac) - 1.0;
  };
  widen(interval.low.time_frac, interval.high.time_frac, CollectiveSharing::held_out_time_frac);
  widen(interval.low.energy_frac, interval.high.energy_frac,
        CollectiveSharing::held_out_energy_frac);
}

// Keeps the better plan, with a bound that holds for plans on either number of SMs.
void choose(GraphPlanOutcome& best, GraphPlanOutcome other, double comm_sms, double odds_frac) {
  const bool exact = best.result.question.grain == Granularity::run;
  // One clock for all that does not end in time does not bound what the others take.
  const bool bounds = !exact || (best.result.found() && other.result.found());
  const double bound_j = bounds ? std::min(best.result.lower_bound_j, other.result.lower_bound_j)
                                : std::max(best.result.lower_bound_j, other.result.lower_bound_j);
  if (is_better(other, best, odds_frac)) {
    best = std::move(other);
    best.comm_sms = comm_sms;
    widen_for_comm_sms(best.interval);
  }
  GraphPlanResult& result = best.result;
  if (!result.found()) return;
  result.lower_bound_j = bound_j;
  result.gap_frac = std::max(1.0 - bound_j / result.run.total_energy_j, 0.0);
  if (result.status == SolveStatus::optimal && result.gap_frac > optimal_gap_frac)
    result.status = SolveStatus::feasible;
  if (bound_j <= 0.0) result.status = SolveStatus::time_limit;  // a search was stopped: no bound
}

// Numbers of SMs to try. Bad ones are refused here, before any work is done.
std::vector<double> comm_sms_to_try(const GraphExplorationInput& input, GraphExploration& found) {
  if (!input.comm_sms) return {};
  found.overlapping = overlapping_collectives(*found.run, input.captures, input.spec.sm_count);
  if (found.overlapping.empty())
    throw UsageError("no collective runs beside compute here: there are no SMs to choose",
                     {.in = {}, .hint = "leave --comm-sms out"});
  std::vector<double> tried = input.comm_sms->empty()
                                  ? usual_comm_sms(found.overlapping, input.spec.sm_count)
                                  : *input.comm_sms;
  for (const double comm_sms : tried) {
    if (!(comm_sms >= 1.0 && comm_sms < input.spec.sm_count))
      throw UsageError(fmt::format("a collective on {} SMs: {} has {}; expected 1 to {}", comm_sms,
                                   input.spec.name, input.spec.sm_count, input.spec.sm_count - 1));
  }
  return tried;
}

// Asks every question again with collectives on other SMs, within the same deadline.
void try_comm_sms(const GraphExplorationInput& input, std::span<const double> tried,
                  std::span<const GraphQuestion> questions, GraphExploration& found,
                  const RunContext& context) {
  for (const double comm_sms : tried) {
    if (context.stop_requested()) return;
    CommSmsChoice& choice = found.comm_sms.emplace_back();
    choice.comm_sms = comm_sms;
    choice.model =
        std::make_unique<const GraphModel>(found.model->with_comm_sms(found.overlapping, comm_sms));
    choice.planner = std::make_unique<GraphPlanner>(*choice.model, found.planner->grid(), context,
                                                    input.switching, &found.planner->baseline());
    auto others = rehearsed_answers(*choice.model, *choice.planner, *found.model, questions,
                                    input.odds_frac, context);
    for (std::size_t q = 0; q < found.plans.size(); ++q)
      choose(found.plans[q], std::move(others[q]), comm_sms, input.odds_frac);
  }
}

// Numbers of a graph's activities, in an order that does not hang on its arcs.
std::vector<std::size_t> order_as_captured(const ExecutionGraph& graph) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (graph.activities()[i].kind != ActivityKind::host) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const Activity& one = graph.activities()[i];
    return std::tuple(one.kind, one.rank, one.stream, one.start_s, one.launch, one.kernel);
  });
  return order;
}

// Pauses of a host that the file does not explain are taken as waits for the GPU. What plans change
// if it worked in them lies in their intervals too. Odds keep the reading that is later.
void add_other_reading(const GraphExplorationInput& input, GraphExploration& found) {
  if (found.run->ambiguous_s <= least_wait_s) return;
  ExecutionGraph graph = capture_graph(input.captures, {.pauses_wait = false}).graph;
  if (found.host_time_factor < 1.0) graph = graph.with_host_time(found.host_time_factor);
  GraphModel model = model_of_run(graph, input);
  if (!input.disturbance.none()) model = disturbed(model, input.disturbance);
  const ClockGrid& grid = found.planner->grid();
  GraphSimulator simulator(model, grid);
  const GraphPlan defaults = uniform_plan(graph, grid.default_clock());
  const GraphRun baseline = simulator.run(defaults);
  const std::vector<std::size_t> here = order_as_captured(found.run->graph),
                                 there = order_as_captured(graph);
  for (GraphPlanOutcome& outcome : found.plans) {
    if (!outcome.result.found() || outcome.comm_sms) continue;  // other SMs: not read twice
    GraphPlan plan = defaults;
    for (std::size_t i = 0; i < there.size(); ++i)
      plan.clock_of_activity[there[i]] = outcome.result.plan.clock_of_activity[here[i]];
    const PlanChange other = change_against(simulator.run(plan), baseline);
    GraphPlanInterval& of = outcome.interval;
    of.low = {std::min(of.low.time_frac, other.time_frac),
              std::min(of.low.energy_frac, other.energy_frac)};
    of.high = {std::max(of.high.time_frac, other.time_frac),
               std::max(of.high.energy_frac, other.energy_frac)};
    outcome.marks.push_back(
        {MarkKind::two_readings,
         fmt::format("hosts paused for {:.1f} ms and the file does not say why: taken is that they "
                     "waited for the GPU; if they worked, the plan takes {} % time and {} % energy",
                     ms_per_s * found.run->ambiguous_s, format_signed(percent * other.time_frac, 1),
                     format_signed(percent * other.energy_frac, 1))});
  }
}

}  // namespace

const GraphModel& GraphExploration::model_of(const GraphPlanOutcome& outcome) const {
  const auto choice = std::ranges::find(comm_sms, outcome.comm_sms, &CommSmsChoice::comm_sms);
  return choice == comm_sms.end() ? *model : *choice->model;
}

const GraphPlanner& GraphExploration::planner_of(const GraphPlanOutcome& outcome) const {
  const auto choice = std::ranges::find(comm_sms, outcome.comm_sms, &CommSmsChoice::comm_sms);
  return choice == comm_sms.end() ? *planner : *choice->planner;
}

GraphExploration explore_captured(const GraphExplorationInput& input, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  for (const Question& question : input.questions) refuse_unanswerable(RunKind::capture, question);
  GraphExploration found = reproduced_run(input);
  found.odds_frac = input.odds_frac;
  const std::vector<double> comm_sms = comm_sms_to_try(input, found);
  const ExecutionGraph& graph = found.run->graph;
  const ClockGrid grid = make_clock_grid(input.spec, input.grid);
  if (!input.disturbance.none()) {
    found.undisturbed_span_s =
        GraphSimulator(*found.model, grid).run(uniform_plan(graph, grid.default_clock())).span_s;
    found.model = std::make_unique<const GraphModel>(disturbed(*found.model, input.disturbance));
  }
  found.planner = std::make_unique<GraphPlanner>(*found.model, grid, context, input.switching);
  found.baseline_marks = marks_of_clocks(
      *found.model, grid, uniform_plan(graph, grid.default_clock()), found.planner->baseline());
  if (input.host_power_w > 0.0)
    found.baseline_marks.push_back(mark_of_host_power(input.host_power_w));
  std::vector<GraphQuestion> of_slacks;
  std::vector<Question> of_goals;
  for (const Question& question : input.questions) {
    if (const auto slack_frac = allowed_frac(question)) {
      of_slacks.push_back({.grain = question.granularity,
                           .slack_frac = *slack_frac,
                           .aggregation = question.aggregation});
    } else {
      of_goals.push_back(question);
    }
  }
  found.plans = rehearsed_answers(*found.model, *found.planner, *found.model, of_slacks,
                                  input.odds_frac, context);
  try_comm_sms(input, comm_sms, of_slacks, found, context);
  std::vector<GraphPlanOutcome> goals = plans_of_goals(found, of_goals, context);
  for (std::size_t q = 0, goal = 0; q < input.questions.size(); ++q) {
    if (allowed_frac(input.questions[q])) continue;
    found.plans.insert(found.plans.begin() + static_cast<std::ptrdiff_t>(q),
                       std::move(goals[goal++]));
  }
  for (GraphPlanOutcome& outcome : found.plans) {
    if (!outcome.result.found()) continue;
    outcome.marks = marks_of(found, outcome);
    if (const auto prices = outcome.prices()) outcome.marks.push_back(mark_of_least_cost(*prices));
  }
  add_other_reading(input, found);
  found.interrupted = context.stop_requested();
  found.wall_time_s = seconds_since(begin);
  return found;
}

double default_step_s(const GraphExplorationInput& input) {
  const GraphExploration found = reproduced_run(input);
  const ClockGrid grid = make_clock_grid(input.spec, input.grid);
  const GraphModel model =
      input.disturbance.none() ? *found.model : disturbed(*found.model, input.disturbance);
  const GraphPlan defaults = uniform_plan(found.run->graph, grid.default_clock());
  return GraphSimulator(model, grid).run(defaults).span_s / steps_of(input);
}

double changes_per_s(const GraphPlanResult& result) {
  std::uint64_t changes = 0;
  for (const GpuTotals& gpu : result.run.gpus) changes += gpu.clock_changes;
  return static_cast<double>(changes) / result.run.span_s;
}

}  // namespace rubato
