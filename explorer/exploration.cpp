#include "explorer/exploration.hpp"

#include <algorithm>
#include <chrono>

#include "common/error.hpp"
#include "explorer/choice.hpp"
#include "explorer/switching/search.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs of launches with one clock each, given what a change of clock costs.
void answer_automatic(const ExplorationInput& input, const GpuModel& model, const ClockGrid& grid,
                      const ProfileTable& per_launch, double default_time_s,
                      const RunContext& context, PlanResult& result) {
  const auto* goal = std::get_if<LeastWaste>(&result.question.goal);
  if (goal == nullptr || result.question.aggregation != Aggregation::global) {
    throw UsageError("granularity 'auto' plans for goal 'waste' with global aggregation only");
  }
  std::vector<double> idle_power_w;
  for (const ClockPair& clock : grid.pairs()) idle_power_w.push_back(model.idle_power_w(clock));
  const SwitchingProblem problem{
      .trace = input.trace,
      .per_launch = per_launch,
      .clocks = grid.pairs(),
      .idle_power_w = idle_power_w,
      .switching = input.switching,
      .budget_s = (1.0 + goal->slack_frac + goal->tolerance_frac) * default_time_s};
  // The plans that do not know of switching are starts: one of them is best at either end.
  std::vector<std::vector<ClockRun>> starts;
  for (const auto granularity : {Granularity::iteration, Granularity::pass, Granularity::kernel}) {
    const ChoiceUnits units = choice_units(input.trace, granularity);
    const Solution solution = solve_global(unit_table(per_launch, input.trace, units), *goal,
                                           grid.default_clock(), context);
    if (solution.clock_of_unit.empty()) continue;
    starts.push_back(
        runs_of(input.trace, plan_by_unit(input.trace, units, solution.clock_of_unit)));
  }
  const SwitchingSolution solution = solve_switching(problem, starts, {}, context);
  result.status = solution.status;
  result.objective = solution.total.energy_j;
  result.lower_bound = solution.lower_bound;
  result.gap_frac = solution.gap_frac();
  result.nodes = solution.prices + solution.labels;
  if (!solution.runs.empty()) result.plan = plan_of_runs(input.trace, solution.runs);
}

PlanResult answer(const Question& question, const ExplorationInput& input, const GpuModel& model,
                  const ClockGrid& grid, const ProfileTable& per_launch, double default_time_s,
                  const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  PlanResult result;
  result.question = question;
  if (question.granularity == Granularity::automatic) {
    answer_automatic(input, model, grid, per_launch, default_time_s, context, result);
  } else {
    const ChoiceUnits units = choice_units(input.trace, question.granularity);
    const ProfileTable table = unit_table(per_launch, input.trace, units);
    const Solution solution =
        question.aggregation == Aggregation::global
            ? solve_global(table, question.goal, grid.default_clock(), context)
            : solve_local(table, question.goal, grid.default_clock());
    result.status = solution.status;
    result.objective = solution.objective;
    result.lower_bound = solution.lower_bound;
    result.gap_frac = solution.gap_frac();
    result.nodes = solution.nodes;
    if (!solution.clock_of_unit.empty())
      result.plan = plan_by_unit(input.trace, units, solution.clock_of_unit);
  }
  result.solve_time_s = seconds_since(start);
  if (!result.plan.clock_of_site.empty()) {
    result.sim = simulate(input.trace, model, grid, result.plan, input.switching);
  }
  return result;
}

// Cells that were chosen because they were measured too good keep less when they are measured
// again.
void expect_winners_curse(const ExplorationInput& input, const Exploration& found,
                          const ProfileTable& per_launch, PlanResult& result) {
  const auto* goal = std::get_if<LeastWaste>(&result.question.goal);
  if (goal == nullptr || !result.interval || result.question.aggregation != Aggregation::global ||
      result.question.granularity == Granularity::automatic)
    return;
  const ProfileTable table =
      unit_table(per_launch, input.trace, choice_units(input.trace, result.question.granularity));
  constexpr std::size_t cells_to_draw = 5'000'000, least_campaigns = 8, most_campaigns = 200;
  const WinnersCurse curse =
      winners_curse(table, found.grid.default_clock(),
                    {.noise = input.measured_noise,
                     .time_budget_frac = goal->slack_frac + goal->tolerance_frac,
                     .campaigns = std::clamp(cells_to_draw / (table.rows() * table.clocks()),
                                             least_campaigns, most_campaigns)});
  const auto moved = [](double estimate, double reference, const Interval& lost) {
    const double pct = 100.0 * (estimate / reference - 1.0);
    return Interval{std::min(pct, pct + lost.low_pct), pct + lost.median_pct,
                    std::max(pct, pct + lost.high_pct)};
  };
  const Totals &plan = result.sim.total, &base = found.baseline.total;
  result.interval = {moved(plan.time_s, base.time_s, curse.lost.time),
                     moved(plan.energy_j, base.energy_j, curse.lost.energy)};
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

// What measured cells are off by: nothing in common, and Gaussian, of which Student's t has the
// deviation at a smaller scale.
ModelErrors of_noise(const RelativeErrors& noise) {
  constexpr double scale = 0.7071;
  return {.shared = {}, .own = {scale * noise.time, scale * noise.energy}};
}

}  // namespace

GpuModel model_of(const ExplorationInput& input) {
  return {input.spec, input.trace, input.power_limit_w, input.measured};
}

Exploration explore(const ExplorationInput& input, const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const GpuModel model = model_of(input);
  Exploration found{.grid = input.measured ? ClockGrid(input.spec, input.measured_clocks)
                                           : make_clock_grid(input.spec, input.grid),
                    .cells = {},
                    .coefficient_sources = {},
                    .work_dropped = {},
                    .baseline = {},
                    .plans = {},
                    .fronts = {},
                    .wall_time_s = 0.0,
                    .interrupted = false};
  for (std::size_t k = 0; k < model.kernels(); ++k) {
    found.coefficient_sources.push_back(model.source(id_at<KernelId>(k)));
    found.work_dropped.push_back(model.work_dropped(id_at<KernelId>(k)));
  }
  found.cells = evaluate_all(model, found.grid);
  const ProfileTable per_launch = profile_table(found.cells, model.kernels(), found.grid.size());
  const Plan defaults = uniform_plan(input.trace, found.grid.default_clock());
  found.baseline = simulate(input.trace, model, found.grid, defaults, input.switching);

  // As many models as a spec's ensemble has members.
  constexpr std::size_t drawn_models = 16;
  const std::vector<GpuModel> models = input.measured
                                           ? std::vector<GpuModel>(drawn_models, model)
                                           : draw_models(model, input.trace, drawn_models);
  const ModelErrors errors =
      input.measured ? of_noise(input.measured_noise) : model_errors(input.spec);
  std::vector<Granularity> fronts;
  for (const Question& question : input.questions) {
    if (context.stop_requested()) {
      found.interrupted = true;
      break;
    }
    found.plans.push_back(answer(question, input, model, found.grid, per_launch,
                                 found.baseline.total.time_s, context));
    PlanResult& result = found.plans.back();
    if (!result.plan.clock_of_site.empty())
      result.interval = saving_interval(input.trace, model, models, found.grid, result.plan, errors,
                                        input.switching);
    if (input.measured) expect_winners_curse(input, found, per_launch, result);
    context.report({.done = found.plans.size(),
                    .total = input.questions.size(),
                    .note = name_of(question.goal)});
    const bool has_front = question.granularity != Granularity::automatic;
    if (has_front && std::ranges::find(fronts, question.granularity) == fronts.end()) {
      fronts.push_back(question.granularity);
    }
  }
  for (const Granularity granularity : fronts) {
    found.fronts.push_back(front_of(granularity, input.trace, per_launch));
  }
  found.wall_time_s = seconds_since(start);
  return found;
}

}  // namespace rubato
