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
#include "explorer/plan/answer.hpp"
#include "explorer/plan/defaults.hpp"
#include "explorer/plan/margin.hpp"
#include "explorer/plan/refusals.hpp"
#include "explorer/plan/trace_step.hpp"
#include "explorer/results/answers.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

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

// What the clocks of a plan come to.
void apply(const Shared& shared, const Exploration& found, PlanResult& result) {
  const auto& [input, model, per_launch, tables, simulator] = shared;
  const SwitchModel switching = switching_of(input, result.question);
  result.verdict = applicable(
      std::vector<AppliedTarget>{
          {"", applied_step(input.trace, result.plan, found.grid, per_launch)}},
      switching_in_earnest(switching, input.spec));
  result.sim = simulator.totals(result.plan, switching);
  add_power(result.sim, input.host_power_w);
  // Plans of most granularities are chosen as if changes of clock were free.
  const std::vector<Mark> missed =
      marks_of_changes({result.question.goal, found.baseline.total, result.sim.total, {}, {}});
  if (std::ranges::find(missed, MarkKind::slack_missed, &Mark::kind) != missed.end())
    result.status = SolveStatus::infeasible;
}

// @param target  the goal to plan for: that of the question, or one for less time
PlanResult answer(const Question& question, const Goal& target, const Shared& shared,
                  const Exploration& found, double gap_frac, const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const auto& [input, model, per_launch, tables, simulator] = shared;
  const ClockGrid& grid = found.grid;
  PlanResult result;
  result.question = question;
  if (question.granularity == Granularity::segment) {
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
      std::vector<ClockId> clocks =
          with_few_changes(table, solution.clock_of_unit, grid.default_clock());
      // Where limits slow kernels down, less time for less energy may be more power.
      const auto* time = std::get_if<LeastTime>(&target);
      const Cost total = total_of(table, clocks);
      if (time != nullptr && time->max_average_power_w &&
          total.energy_j > *time->max_average_power_w * total.time_s)
        clocks = solution.clock_of_unit;
      result.plan = plan_by_unit(input.trace, units, clocks);
    }
  }
  result.solve_time_s = seconds_since(start);
  if (!result.plan.clock_of_site.empty()) apply(shared, found, result);
  return result;
}

// Least energy of one clock for all in the time that the goal allows. Only for waste, one budget.
std::optional<double> best_one_clock_j(UnitTables& tables, const Question& question,
                                       ClockId default_clock) {
  if (!std::holds_alternative<LeastWaste>(question.goal) ||
      question.aggregation == Aggregation::local)
    return std::nullopt;
  const Solution one_clock =
      solve_local(tables.table(Granularity::run), question.goal, default_clock);
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
                      question.granularity != Granularity::segment;
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
  const Plan defaults = uniform_plan(shared.input.trace, found.grid.default_clock());
  const bool untouched = result.plan.clock_of_site == defaults.clock_of_site;
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
  static void take_bound(const PlanResult& asked, PlanResult& other) {
    other.lower_bound = asked.lower_bound;
    other.gap_frac = std::max(0.0, 1.0 - other.lower_bound / other.objective);
    if (other.gap_frac > asked.gap_frac) other.status = SolveStatus::feasible;
  }
  PlanResult kept_defaults(std::size_t /*question*/, const PlanResult& asked) {
    return answered_with(uniform_plan(shared.input.trace, found.grid.default_clock()), asked);
  }
  // Another plan as the answer: the question and its bound stay.
  [[nodiscard]] PlanResult answered_with(const Plan& plan, const PlanResult& asked) const {
    PlanResult other = asked;
    other.status = SolveStatus::feasible;
    other.plan = plan;
    other.counted.reset();
    other.marks.clear();
    apply(shared, found, other);
    const Totals& total = other.sim.total;
    other.objective = value_of_goal(question.goal, {total.time_s, total.energy_j}, 1.0);
    take_bound(asked, other);
    (void)rubato::appraise(shared, intervals, found, other);
    return other;
  }
};

PlanResult answer_with_odds(AskedTrace asked) {
  const std::array slack_frac{allowed_frac(asked.question).value_or(0.0)};
  PlanResult plan =
      plans_with_odds(asked, std::vector{asked.plan(asked.question.goal)}, slack_frac, slack_frac,
                      asked.shared.input.odds_frac, MarginSearch::tries, asked.context)
          .front();
  plan.solve_time_s = asked.solve_time_s;
  return plan;
}

// Whether a plan can be set and keeps what was asked for.
bool counts(const Contender& plan) {
  return plan.holds && plan.verdict.applicable && has_odds(plan.odds_in_time, plan.odds_frac);
}

// A coarser plan is one of the finer granularity too, and the answer where it takes less as
// applied. A plan that does not count stays: it says what free changes would save.
// @param known  answers so far; coarser ones that nobody asked for are added
PlanResult answer_beside_coarser(const AskedTrace& asked, std::vector<PlanResult>& known) {
  const Exploration& found = asked.found;
  PlanResult best = answer_with_odds(asked);
  Contender own = contender_of(found, best);
  const Granularity unit = asked.question.granularity;
  const bool is_exact =
      !best.bolder && unit != Granularity::segment && best.found() && own.clock_changes == 0;
  if (is_exact || (best.found() && !counts(own)) ||
      asked.question.aggregation == Aggregation::local)
    return best;
  for (const Granularity one : {Granularity::run, Granularity::pass, Granularity::kernel}) {
    if (one >= unit || asked.context.stop_requested()) break;
    Question question = asked.question;
    question.granularity = one;
    question.counts_changes = false;
    const auto is_it = [&](const PlanResult& plan) {
      return plan.question.granularity == one &&
             plan.question.aggregation == question.aggregation &&
             want_text(plan.question.goal) == own.want;
    };
    auto plan = std::ranges::find_if(known, is_it);
    if (plan == known.end())
      plan = known.insert(known.end(), answer_with_odds({question, asked.shared, asked.intervals,
                                                         found, asked.gap_frac, asked.context}));
    const auto is_better = [&](const PlanResult& other) {
      const Contender contender = contender_of(found, other);
      return counts(contender) && (!counts(own) || contender.objective_frac < own.objective_frac);
    };
    if (!plan->found() || !is_better(*plan)) continue;
    PlanResult taken = asked.answered_with(plan->plan, best);
    if (!is_better(taken)) continue;
    if (!taken.bolder) taken.bolder = plan->bolder;
    best = std::move(taken);
    own = contender_of(found, best);
  }
  return best;
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
  std::vector<PlanResult> known;
  for (const Question& question : input.questions) {
    if (context.stop_requested()) {
      found.interrupted = true;
      break;
    }
    found.plans.push_back(
        intervals
            ? answer_beside_coarser(
                  {question, shared, *intervals, found, limits.gap_frac, limit.context()}, known)
            : answer(question, question.goal, shared, found, limits.gap_frac, limit.context()));
    known.push_back(found.plans.back());
    context.report({.done = found.plans.size(),
                    .total = input.questions.size(),
                    .note = name_of(question.goal)});
    const bool has_front = !input.plans_only && question.granularity != Granularity::segment;
    if (has_front && std::ranges::find(fronts, question.granularity) == fronts.end())
      fronts.push_back(question.granularity);
  }
  for (const Granularity granularity : fronts)
    found.fronts.push_back(front_of(granularity, tables.table(granularity)));
  found.wall_time_s = seconds_since(start);
  return found;
}

}  // namespace rubato
