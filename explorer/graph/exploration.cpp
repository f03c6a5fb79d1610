#include "explorer/graph/exploration.hpp"

#include <algorithm>
#include <chrono>

#include "common/numbers.hpp"

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

}  // namespace

double GraphPlanOutcome::least(double PlanChange::*field) const {
  return std::min({change.*field, core_bound.*field, mem_bound.*field});
}

double GraphPlanOutcome::most(double PlanChange::*field) const {
  return std::max({change.*field, core_bound.*field, mem_bound.*field});
}

GraphExploration explore_captured(const GraphExplorationInput& input, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  GraphExploration found;
  found.run = std::make_unique<const CaptureGraph>(input.captures.size() == 1
                                                       ? capture_graph(input.captures.front())
                                                       : capture_graph(std::span(input.captures)));
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
  found.planner = std::make_unique<GraphPlanner>(*found.model, grid, context, input.switching);
  GraphSimulator simulator(*found.model, grid);
  OtherSplit core_bound(*found.model, grid, 1.0), mem_bound(*found.model, grid, 0.0);
  for (GraphPlanResult& result : found.planner->plan(input.questions, context)) {
    GraphPlanOutcome& outcome = found.plans.emplace_back();
    outcome.result = std::move(result);
    if (!outcome.result.found()) continue;
    outcome.change = change(outcome.result.run, found.planner->baseline());
    outcome.core_bound = core_bound.change_of(outcome.result);
    outcome.mem_bound = mem_bound.change_of(outcome.result);
    if (!input.switching) continue;
    outcome.counted = counted_changes(
        outcome.result, simulator.run(outcome.result.plan, {.switching = *input.switching}),
        found.planner->baseline());
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
