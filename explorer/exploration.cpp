#include "explorer/exploration.hpp"

#include <algorithm>
#include <chrono>

#include "explorer/choice.hpp"

namespace rubato {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

PlanResult answer(const Question& question, const ExplorationInput& input, const GpuModel& model,
                  const ClockGrid& grid, const ProfileTable& per_launch,
                  const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const ChoiceUnits units = choice_units(input.trace, question.granularity);
  const ProfileTable table = unit_table(per_launch, input.trace, units);
  const Solution solution = question.aggregation == Aggregation::global
                                ? solve_global(table, question.goal, grid.default_clock(), context)
                                : solve_local(table, question.goal, grid.default_clock());
  PlanResult result{.question = question,
                    .status = solution.status,
                    .objective = solution.objective,
                    .lower_bound = solution.lower_bound,
                    .gap_frac = solution.gap_frac(),
                    .nodes = solution.nodes,
                    .solve_time_s = seconds_since(start),
                    .plan = {},
                    .sim = {}};
  if (solution.clock_of_unit.empty()) return result;
  result.plan = plan_by_unit(input.trace, units, solution.clock_of_unit);
  result.sim = simulate(input.trace, model, grid, result.plan, input.switch_cost);
  return result;
}

Front front_of(Granularity granularity, const Trace& trace, const ProfileTable& per_launch) {
  const ProfileTable table = unit_table(per_launch, trace, choice_units(trace, granularity));
  // A few units have a front that can be listed; kernels have its supported points.
  const bool few = granularity != Granularity::kernel;
  Front front{.granularity = granularity, .points = {}};
  for (const Cost& cost : few ? exact_front(table) : supported_front(table)) {
    front.points.push_back({cost.time_s, cost.energy_j});
  }
  return front;
}

}  // namespace

Exploration explore(const ExplorationInput& input, const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const GpuModel model(input.spec, input.trace, input.power_limit_w);
  Exploration found{.grid = make_clock_grid(input.spec, input.grid),
                    .cells = {},
                    .coefficient_sources = {},
                    .baseline = {},
                    .plans = {},
                    .fronts = {},
                    .wall_time_s = 0.0,
                    .interrupted = false};
  for (std::size_t k = 0; k < model.kernels(); ++k)
    found.coefficient_sources.push_back(model.source(id_at<KernelId>(k)));
  found.cells = evaluate_all(model, found.grid);
  const ProfileTable per_launch = profile_table(found.cells, model.kernels(), found.grid.size());
  const Plan defaults = uniform_plan(input.trace, found.grid.default_clock());
  found.baseline = simulate(input.trace, model, found.grid, defaults, input.switch_cost);

  std::vector<Granularity> fronts;
  for (const Question& question : input.questions) {
    if (context.stop_requested()) {
      found.interrupted = true;
      break;
    }
    found.plans.push_back(answer(question, input, model, found.grid, per_launch, context));
    context.report({.done = found.plans.size(),
                    .total = input.questions.size(),
                    .note = name_of(question.goal)});
    if (std::ranges::find(fronts, question.granularity) == fronts.end())
      fronts.push_back(question.granularity);
  }
  for (const Granularity granularity : fronts)
    found.fronts.push_back(front_of(granularity, input.trace, per_launch));
  found.wall_time_s = seconds_since(start);
  return found;
}

}  // namespace rubato
