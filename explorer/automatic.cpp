#include "explorer/automatic.hpp"

#include <algorithm>

#include "explorer/choice.hpp"
#include "explorer/plan/defaults.hpp"

namespace rubato {

SwitchingSolution solve_automatic(const ExplorationInput& input, const GpuModel& model,
                                  const ClockGrid& grid, const ProfileTable& per_launch,
                                  const SwitchModel& switching, const LeastWaste& goal,
                                  double budget_s, double gap_frac, const RunContext& context) {
  std::vector<double> idle_power_w;
  for (const ClockPair& clock : grid.pairs())
    idle_power_w.push_back(model.idle_power_w(clock) + input.host_power_w);
  const SwitchingProblem problem{.trace = input.trace,
                                 .per_launch = per_launch,
                                 .clocks = grid.pairs(),
                                 .idle_power_w = idle_power_w,
                                 .switching = switching,
                                 .budget_s = budget_s};
  std::vector<std::vector<ClockRun>> starts;
  for (const auto granularity : {Granularity::run, Granularity::pass, Granularity::kernel}) {
    const ChoiceUnits units = choice_units(input.trace, granularity);
    const Solution solution = solve_global(unit_table(per_launch, input.trace, units), goal,
                                           grid.default_clock(), context);
    if (solution.clock_of_unit.empty()) continue;
    starts.push_back(
        runs_of(input.trace, plan_by_unit(input.trace, units, solution.clock_of_unit)));
  }
  return solve_switching(problem, starts, gap_frac, context);
}

void answer_automatic(const ExplorationInput& input, const GpuModel& model, const ClockGrid& grid,
                      const ProfileTable& per_launch, const Totals& defaults, const Goal& target,
                      double gap_frac, const RunContext& context, PlanResult& result) {
  constexpr double shown_frac = 5e-5;
  const auto* goal = std::get_if<LeastWaste>(&target);
  const SwitchingSolution solution = solve_automatic(
      input, model, grid, per_launch, applicable_switching(switching_of(input, result.question)),
      *goal, (1.0 + goal->slack_frac + goal->tolerance_frac) * defaults.time_s, gap_frac, context);
  result.status = solution.status;
  result.objective = solution.total.energy_j;
  result.lower_bound = solution.lower_bound;
  result.gap_frac = solution.gap_frac();
  result.nodes = solution.prices;
  if (solution.runs.empty()) return;
  const bool in_time = goal->slack_frac + goal->tolerance_frac >= 0.0;
  if (in_time && solution.total.energy_j > defaults.energy_j * (1.0 - shown_frac) &&
      solution.total.time_s > defaults.time_s * (1.0 - shown_frac)) {
    result.plan = uniform_plan(input.trace, grid.default_clock());
    result.objective = defaults.energy_j;
    result.gap_frac = std::max(0.0, 1.0 - result.lower_bound / result.objective);
  } else {
    result.plan = plan_of_runs(input.trace, solution.runs);
  }
}

}  // namespace rubato
