#include "explorer/exploration.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <span>

#include "common/numbers.hpp"
#include "explorer/automatic.hpp"
#include "explorer/choice.hpp"
#include "explorer/confidence/winners_curse.hpp"
#include "explorer/fewest_changes.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/plan/margin.hpp"
#include "explorer/plan/refusals.hpp"
#include "explorer/plan/trace_step.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

// Runs of launches with one clock each, given what a change of clock costs. A plan whose saving
// does not show in the last digit of a percentage is replaced by the default clocks.
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

// Cells that the simulator need not evaluate again. It reads measured ones itself, holes and all.
std::span<const OperatingPoint> cells_of(const ExplorationInput& input, const Exploration& found) {
  return input.measured ? std::span<const OperatingPoint>{} : found.cells;
}

// A request under way: what its questions share.
struct Shared {
  const ExplorationInput& input;
  const GpuModel& model;
  const ProfileTable& per_launch;
  UnitTables& tables;
  TraceSimulator& simulator;
};

// @param target  the goal to plan for: that of the question, or one for less time
PlanResult answer(const Question& question, const Goal& target, const Shared& shared,
                  const Exploration& found, double gap_frac, const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const auto& [input, model, per_launch, tables, simulator] = shared;
  const ClockGrid& grid = found.grid;
  PlanResult result;
  result.question = question;
  if (question.granularity == Granularity::automatic) {
    answer_automatic(input, model, grid, per_launch, found.baseline.total, target, gap_frac,
                     context, result);
  } else {
    const ChoiceUnits& units = tables.units(question.granularity);
    const ProfileTable& table = tables.table(question.granularity);
    const Solution solution = question.aggregation == Aggregation::global
                                  ? solve_global(table, target, grid.default_clock(), context)
                                  : solve_local(table, target, grid.default_clock());
    result.status = solution.status;
    result.objective = solution.objective;
    result.lower_bound = solution.lower_bound;
    result.gap_frac = solution.gap_frac();
    result.nodes = solution.nodes;
    if (!solution.clock_of_unit.empty()) {
      result.plan = plan_by_unit(input.trace, units,
                                 with_few_changes(input.trace, units, table, solution.clock_of_unit,
                                                  grid.default_clock()));
    }
  }
  result.solve_time_s = seconds_since(start);
  if (result.plan.clock_of_site.empty()) return result;
  const SwitchModel switching = switching_of(input, question);
  result.verdict = applicable(
      std::vector<AppliedTarget>{{"", applied_step(input.trace, result.plan, grid, per_launch)}},
      switching_in_earnest(switching, input.spec));
  result.sim = simulator.totals(result.plan, switching);
  add_power(result.sim, input.host_power_w);
  // Plans of these granularities are chosen as if changes of clock were free.
  const std::vector<Mark> missed =
      marks_of_changes({question.goal, found.baseline.total, result.sim.total, {}, {}});
  if (std::ranges::find(missed, MarkKind::slack_missed, &Mark::kind) != missed.end())
    result.status = SolveStatus::infeasible;
  return result;
}

// Least energy of one clock for all in the time that the goal allows. Only for waste, one budget.
std::optional<double> best_one_clock_j(UnitTables& tables, const Question& question,
                                       ClockId default_clock) {
  if (!std::holds_alternative<LeastWaste>(question.goal) ||
      question.aggregation == Aggregation::local)
    return std::nullopt;
  const Solution one_clock =
      solve_local(tables.table(Granularity::iteration), question.goal, default_clock);
  if (one_clock.clock_of_unit.empty()) return std::nullopt;  // none is in time
  return one_clock.total.energy_j;
}

// Marks of a step that hold at any clock.
std::vector<Mark> marks_of_step(const ExplorationInput& input, const Exploration& found) {
  std::vector<Mark> marks;
  if (const auto memory = mark_of_memory(input.trace, input.spec)) marks.push_back(*memory);
  if (const auto scaled = mark_of_scaled(found.coefficient_sources, found.baseline.by_kernel))
    marks.push_back(*scaled);
  return marks;
}

// Adds what to know beside a plan's numbers, and its totals if changes of clock are not free.
void mark(const Shared& shared, const Exploration& found, PlanResult& result) {
  if (result.plan.clock_of_site.empty()) return;
  const auto& [input, model, per_launch, tables, simulator] = shared;
  const SwitchModel real = switch_model(input.spec);
  const bool known_to_cost =
      input.switching.is_free() && !real.is_free() && result.sim.total.clock_switches > 0;
  if (known_to_cost && !result.question.counts_changes) {
    result.counted = simulator.totals(result.plan, real).total;
    add_power(*result.counted, input.host_power_w);
  }
  result.marks = marks_of_clocks(input.trace, model, found.grid, result.plan, found.cells);
  if (!result.verdict.applicable)
    result.marks.push_back({MarkKind::not_applicable, result.verdict.because});
  std::ranges::move(marks_of_step(input, found), std::back_inserter(result.marks));
  if (known_to_cost && result.question.counts_changes)
    result.marks.push_back(mark_of_counted_changes(change_text(real)));
  std::ranges::move(
      marks_of_changes({result.question.goal, found.baseline.total, result.sim.total,
                        result.counted,
                        best_one_clock_j(tables, result.question, found.grid.default_clock()),
                        result.counted ? change_text(real) : ""}),
      std::back_inserter(result.marks));
}

Front front_of(Granularity granularity, const ProfileTable& table) {
  // The front of few units can be listed. That of kernels is too long: its supported points stand
  // for it, and slack_ladder() finds others between them.
  const bool few = granularity != Granularity::kernel;
  Front front{.granularity = granularity, .points = {}};
  for (const Cost& cost : few ? exact_front(table) : supported_front(table)) {
    front.points.push_back({cost.time_s, cost.energy_j});
  }
  return front;
}

// How far off a plan's change may be. A plan on measured cells was chosen among noisy ones. Where
// that choice can be played again, it is (winners_curse.hpp). Else the model's errors are drawn.
PlanOutlook outlook_of_plan(const Shared& shared, PlanIntervals& intervals,
                            const Exploration& found, const PlanResult& result) {
  const ExplorationInput& input = shared.input;
  const Question& question = result.question;
  const auto* goal = std::get_if<LeastWaste>(&question.goal);
  const bool played = input.measured && goal != nullptr &&
                      question.aggregation == Aggregation::global &&
                      question.granularity != Granularity::automatic;
  if (!played)
    return intervals.outlook(result.plan, {result.sim.total.time_s, result.sim.total.energy_j},
                             switching_of(input, question));
  // Only the GPU's cells are noisy. Host power, which is known, comes in beside the table.
  const ProfileTable table =
      unit_table(profile_table(found.cells, input.trace.kernels.size(), found.grid.size()),
                 input.trace, shared.tables.units(question.granularity));
  return remeasured_outlook(table, found.grid.default_clock(),
                            {.noise = input.measured_noise,
                             .time_budget_frac = goal->slack_frac + goal->tolerance_frac,
                             .host_power_w = input.host_power_w},
                            {change_pct(result.sim.total.time_s, found.baseline.total.time_s),
                             change_pct(result.sim.total.energy_j, found.baseline.total.energy_j)});
}

// Adds how far to trust a plan.
// @return the change of time, as applied, that it keeps with the odds asked for; nothing where
//         there is no deadline, or no plan that keeps it if the model is right
std::optional<double> appraise(const Shared& shared, PlanIntervals& intervals,
                               const Exploration& found, PlanResult& result) {
  mark(shared, found, result);
  if (result.plan.clock_of_site.empty()) return std::nullopt;
  const PlanOutlook outlook = outlook_of_plan(shared, intervals, found, result);
  result.interval = outlook.interval;
  const std::optional<double> slack_frac = allowed_frac(result.question);
  if (!slack_frac) return std::nullopt;
  const double base_s = found.baseline.total.time_s;
  const Totals& applied = result.counted ? *result.counted : result.sim.total;
  const double added_pct = percent * (applied.time_s - result.sim.total.time_s) / base_s;
  const double slack_pct = percent * *slack_frac;
  const bool untouched = std::ranges::all_of(result.plan.clock_of_site, [&](ClockId clock) {
    return clock == found.grid.default_clock();
  });
  result.odds_in_time =
      untouched ? (slack_pct >= 0.0 ? 1.0 : 0.0) : outlook.times.odds_within(slack_pct - added_pct);
  if (result.status == SolveStatus::infeasible || change_pct(applied.time_s, base_s) > slack_pct)
    return std::nullopt;
  return (outlook.times.kept_with(shared.input.odds_frac) + added_pct) / percent;
}

// A question as plans_with_odds() asks it.
struct AskedTrace {
  const Question& question;
  const Shared& shared;
  PlanIntervals& intervals;
  const Exploration& found;
  double gap_frac;
  const RunContext& context;
  double solve_time_s = 0.0;

  PlanResult plan(const Goal& target) {
    PlanResult one = answer(question, target, shared, found, gap_frac, context);
    solve_time_s += one.solve_time_s;
    return one;
  }
  std::vector<PlanResult> planned(std::span<const MarginTarget> targets) {
    return {plan(LeastWaste{targets.front().slack_frac})};
  }
  std::optional<double> appraise(std::size_t /*question*/, PlanResult& one) {
    return rubato::appraise(shared, intervals, found, one);
  }
  [[nodiscard]] double energy_frac(const PlanResult& one) const {
    return one.sim.total.energy_j / found.baseline.total.energy_j - 1.0;
  }
  PlanResult kept_defaults(std::size_t /*question*/, const PlanResult& asked) {
    PlanResult kept = asked;
    kept.status = SolveStatus::feasible;
    kept.plan = uniform_plan(shared.input.trace, found.grid.default_clock());
    kept.sim = found.baseline;
    kept.objective = kept.sim.total.energy_j;
    kept.gap_frac = std::max(0.0, 1.0 - kept.lower_bound / kept.objective);
    kept.counted.reset();
    kept.verdict = {};
    kept.marks.clear();
    (void)rubato::appraise(shared, intervals, found, kept);
    return kept;
  }
};

PlanResult answer_with_odds(AskedTrace asked) {
  const bool is_quick =
      asked.question.granularity != Granularity::automatic && !asked.shared.input.measured;
  const std::array slack_frac{allowed_frac(asked.question).value_or(0.0)};
  PlanResult plan =
      std::move(plans_with_odds(asked, std::vector{asked.plan(asked.question.goal)}, slack_frac,
                                slack_frac, asked.shared.input.odds_frac,
                                is_quick ? MarginSearch::tries_of_quick_plans : MarginSearch::tries,
                                asked.context)
                    .front());
  plan.solve_time_s = asked.solve_time_s;
  return plan;
}

// The cells of a request, without any answers yet.
Exploration begun(const ExplorationInput& input, const GpuModel& model) {
  Exploration found{.grid = input.measured ? ClockGrid(input.spec, input.measured_clocks)
                                           : make_clock_grid(input.spec, input.grid),
                    .cells = {},
                    .coefficient_sources = {},
                    .work_dropped = {},
                    .baseline = {},
                    .baseline_marks = {},
                    .plans = {},
                    .fronts = {},
                    .odds_frac = input.odds_frac,
                    .wall_time_s = 0.0,
                    .interrupted = false};
  for (std::size_t k = 0; k < model.kernels(); ++k) {
    found.coefficient_sources.push_back(model.source(id_at<KernelId>(k)));
    found.work_dropped.push_back(model.work_dropped(id_at<KernelId>(k)));
  }
  found.cells = evaluate_all(model, found.grid);
  return found;
}

}  // namespace

SwitchModel switching_of(const ExplorationInput& input, const Question& question) {
  return question.counts_changes && input.switching.is_free() ? switch_model(input.spec)
                                                              : input.switching;
}

GpuModel model_of(const ExplorationInput& input) {
  return {input.spec, input.trace, input.power_limit_w, input.measured};
}

Exploration explore(const ExplorationInput& input, const RunContext& context) {
  return explore(input, {}, context);
}

Exploration explore(const ExplorationInput& input, const SearchLimits& limits,
                    const RunContext& context) {
  for (const Question& question : input.questions) refuse_unanswerable(RunKind::trace, question);
  const TimeLimit limit(limits.time_s, context);
  const auto start = std::chrono::steady_clock::now();
  const GpuModel model = model_of(input);
  Exploration found = begun(input, model);
  const ProfileTable per_launch = with_host_power(
      profile_table(found.cells, model.kernels(), found.grid.size()), input.host_power_w);
  const Plan defaults = uniform_plan(input.trace, found.grid.default_clock());
  UnitTables tables(per_launch, input.trace);
  TraceSimulator simulator(input.trace, model, found.grid, cells_of(input, found));
  const Shared shared{input, model, per_launch, tables, simulator};
  found.baseline = simulator.totals(defaults, input.switching);
  add_power(found.baseline, input.host_power_w);

  std::vector<GpuModel> models;
  std::optional<PlanIntervals> intervals;
  if (!input.plans_only) {
    found.baseline_marks = marks_of_clocks(input.trace, model, found.grid, defaults, found.cells);
    std::ranges::move(marks_of_step(input, found), std::back_inserter(found.baseline_marks));
    if (input.host_power_w > 0.0)
      found.baseline_marks.push_back(mark_of_host_power(input.host_power_w));
    models = input.measured ? std::vector<GpuModel>(drawn_models, model)
                            : draw_models(model, input.trace, drawn_models);
    const ModelErrors errors =
        input.measured ? errors_of_noise(input.measured_noise) : model_errors(input.spec);
    intervals.emplace(input.trace, model, models, found.grid, errors, input.switching,
                      input.host_power_w, input.error_draws.get());
  }
  std::vector<Granularity> fronts;
  for (const Question& question : input.questions) {
    if (context.stop_requested()) {
      found.interrupted = true;
      break;
    }
    found.plans.push_back(intervals ? answer_with_odds({question, shared, *intervals, found,
                                                        limits.gap_frac, limit.context()})
                                    : answer(question, question.goal, shared, found,
                                             limits.gap_frac, limit.context()));
    context.report({.done = found.plans.size(),
                    .total = input.questions.size(),
                    .note = name_of(question.goal)});
    const bool has_front = !input.plans_only && question.granularity != Granularity::automatic;
    if (has_front && std::ranges::find(fronts, question.granularity) == fronts.end()) {
      fronts.push_back(question.granularity);
    }
  }
  for (const Granularity granularity : fronts) {
    found.fronts.push_back(front_of(granularity, tables.table(granularity)));
  }
  found.wall_time_s = seconds_since(start);
  return found;
}

}  // namespace rubato
