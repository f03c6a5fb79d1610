#include "explorer/graph/planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "explorer/graph/sequence_bound.hpp"
#include "explorer/graph/sequence_search.hpp"
#include "explorer/pipeline/contraction.hpp"

namespace rubato {

namespace {

// Kernels that run at the same time slow each other down, which solvers do not know: they are asked
// for plans that end earlier by these shares, until the simulator finds one in time.
constexpr std::array shorter{0.0,   0.0005, 0.001, 0.002, 0.004, 0.008, 0.016,
                             0.032, 0.064,  0.1,   0.16,  0.25,  0.4};
constexpr int halvings = 5;       // between the last late and the first plan in time
constexpr int most_repairs = 60;  // of a late plan
// Sums of a thousand launches differ in the last digits.
constexpr double time_tolerance = 1e-9;

}  // namespace

std::string_view name_of(GraphGrain value) noexcept {
  switch (value) {
    case GraphGrain::iteration: return "iteration";
    case GraphGrain::gpu: return "gpu";
    case GraphGrain::pass: return "pass";
    case GraphGrain::kernel: return "kernel";
    case GraphGrain::launch: return "launch";
    case GraphGrain::automatic: break;
  }
  return "auto";
}

std::optional<GraphGrain> grain_named(std::string_view name) noexcept {
  for (const GraphGrain grain : {GraphGrain::iteration, GraphGrain::gpu, GraphGrain::pass,
                                 GraphGrain::kernel, GraphGrain::launch, GraphGrain::automatic}) {
    if (name_of(grain) == name) return grain;
  }
  return std::nullopt;
}

struct GraphPlanner::Prices {
  // Bounds need no vertex beyond the times and the least idle power, see bound_of_launches_j.
  Prices(const LaunchCosts& alone_costs, const LaunchCosts& beside, std::vector<double> wanted_s,
         const RunContext& context)
      : alone(crash_problem(launch_work(alone_costs))),
        work(launch_work(beside)),
        rounder(work),
        times_s(std::move(wanted_s)),
        frontier(sweeps.sweep(
            alone, times_s, times_s.empty() ? all_prices : alone_costs.least_idle_w(), context)) {}

  Contraction alone;
  PipelineWork work;
  ClockRounder rounder;
  LaunchFrontiers sweeps;
  std::vector<double> times_s;  // of the frontier's plans
  Frontier frontier;
};

GraphPlanner::GraphPlanner(const GraphModel& model, const ClockGrid& grid,
                           const RunContext& context, const std::optional<SwitchModel>& switching,
                           const GraphRun* baseline)
    : model_(model),
      grid_(grid),
      switching_(switching),
      simulator_(model, grid),
      defaults_(simulator_.run(uniform_plan(model.graph(), grid.default_clock()))),
      baseline_(baseline != nullptr ? *baseline : defaults_),
      uniform_(sweep_uniform(model, grid, context)),
      alone_(model, grid),
      beside_(model, grid, slowdown_in(alone_, defaults_, grid.default_clock())),
      held_(alone_),
      own_(no_repeats(model.graph())),
      shared_(step_repeats(alone_)) {
  if (switching_) validate(*switching_);
}

GraphPlanner::~GraphPlanner() = default;

void GraphPlanner::prepare(std::vector<double> times_s, const RunContext& context) {
  if (!prices_) prices_ = std::make_unique<Prices>(alone_, beside_, std::move(times_s), context);
}

const Frontier& GraphPlanner::frontier(const RunContext& context) {
  prepare({}, context);
  return prices_->frontier;
}

double GraphPlanner::deadline_s(const GraphQuestion& question) const {
  if (!(question.slack_frac > -1.0) || !std::isfinite(question.slack_frac)) {
    throw UsageError(
        fmt::format("slack is {}; expected a number above -100 %", 100.0 * question.slack_frac));
  }
  if (question.grain == GraphGrain::automatic && !switching_)
    throw UsageError("automatic plans need to know what changes of clock take");
  return baseline_.span_s * (1.0 + question.slack_frac);
}

// A frontier's costs fall with time, idle energy rises: the bound of a vertex at the deadline, or
// at the least time where its price is below the idle power. Two vertices with prices on both sides
// of it give one without a time, of the price in between.
double GraphPlanner::bound_of_launches_j(const Frontier& frontier, double deadline_s) const {
  const double idle_w = alone_.least_idle_w();
  const auto without_time_j = [](const FrontierVertex& v) {
    return v.lower_bound_j + v.price_w * v.time_s;
  };
  double bound_j = 0.0;
  FrontierVertex below{0.0, 0.0, frontier.least_cost_j, 0.0};  // prices rise
  for (const FrontierVertex& v : frontier.vertices) {
    const double at_s = v.price_w >= idle_w ? deadline_s : frontier.least_time_s;
    bound_j = std::max(bound_j, without_time_j(v) + (idle_w - v.price_w) * at_s);
    if (below.price_w < idle_w && v.price_w >= idle_w) {
      const double share = (idle_w - below.price_w) / (v.price_w - below.price_w);
      bound_j =
          std::max(bound_j, (1.0 - share) * without_time_j(below) + share * without_time_j(v));
    }
    below = v;
  }
  return bound_j;
}

double GraphPlanner::bound_j(double deadline_s) const {
  return bound_of_launches_j(prices_->frontier, deadline_s);
}

Frontier GraphPlanner::frontier_of_no_question() const {
  return LaunchFrontiers().sweep(Contraction(crash_problem(launch_work(alone_))), {}, all_prices,
                                 {});
}

// Where the sum of launches and idle power is least.
double GraphPlanner::cheapest_time_s() const {
  const auto energy_j = [&](const FrontierVertex& v) {
    return v.cost_j + alone_.least_idle_w() * v.time_s;
  };
  return std::ranges::min_element(prices_->frontier.vertices, {}, energy_j)->time_s;
}

LaunchUnits GraphPlanner::units_of(const GraphQuestion& question) const {
  using Key = std::array<std::uint32_t, 4>;
  const ExecutionGraph& graph = model_.graph();
  const GraphGrain grain = question.grain;
  const StepRepeats& repeats = repeats_of(question);
  std::vector<std::uint32_t> unit_of_activity(graph.size(), 0);
  std::map<Key, std::uint32_t> known;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (!alone_.is_clocked(i)) continue;
    const std::uint32_t played = grain >= GraphGrain::launch ? repeats.played[i] : i;
    const Activity& activity = graph.activities()[played];
    Key key{};
    if (grain >= GraphGrain::gpu) key[0] = graph.gpu_of(activity)->value;
    if (grain >= GraphGrain::pass) key[1] = static_cast<std::uint32_t>(activity.pass);
    if (grain >= GraphGrain::kernel) key[2] = activity.kernel.value;
    if (grain >= GraphGrain::launch) key[3] = played;
    unit_of_activity[i] =
        known.emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
  }
  return {alone_, static_cast<std::uint32_t>(known.size()), std::move(unit_of_activity)};
}

GraphPlan GraphPlanner::plan_of(const LaunchUnits& units,
                                const std::vector<ClockId>& clock_of_unit) const {
  GraphPlan plan = uniform_plan(model_.graph(), grid_.default_clock());
  for (std::size_t i = 0; i < plan.clock_of_activity.size(); ++i) {
    if (alone_.is_clocked(i)) plan.clock_of_activity[i] = clock_of_unit[units.unit_of(i)];
  }
  return plan;
}

// @return whether the plan ends in time
bool GraphPlanner::keep_if_better(GraphPlanResult& result, GraphPlan plan) {
  if (result.question.grain == GraphGrain::automatic) plan.only_main_streams_ask = true;
  GraphRun run = simulator_.run(plan, {.switching = result.switching});
  if (run.span_s > result.deadline_s * (1.0 + time_tolerance)) return false;
  if (result.found() && run.total_energy_j >= result.run.total_energy_j) return true;
  result.plan = std::move(plan);
  result.run = std::move(run);
  return true;
}

void GraphPlanner::try_uniform(GraphPlanResult& result) {
  const UniformRun* best = nullptr;
  for (const UniformRun& run : uniform_) {
    if (run.span_s > result.deadline_s * (1.0 + time_tolerance)) continue;
    if (best == nullptr || run.energy_j < best->energy_j) best = &run;
  }
  if (best != nullptr) keep_if_better(result, uniform_plan(model_.graph(), best->clock));
}

// Where the simulator finds a plan late, units on the path that ends last are sped up.
void GraphPlanner::repair(GraphPlanResult& result, const LaunchUnits& units,
                          std::vector<ClockId> clock_of_unit, const RunContext& context) {
  for (int i = 0; i < most_repairs && !context.stop_requested(); ++i) {
    GraphPlan plan = plan_of(units, clock_of_unit);
    const GraphRun run = simulator_.run(plan);
    const double late_s = run.span_s - result.deadline_s;
    if (late_s <= time_tolerance * result.deadline_s) {
      keep_if_better(result, std::move(plan));
      return;
    }
    if (!speed_up_latest_path(beside_, units, {run.start_s, run.end_s}, late_s, clock_of_unit))
      return;
  }
}

// From the whole time to shorter ones until the simulator finds a plan in time, then between it and
// the one before. The first one is also repaired, where that is late.
void GraphPlanner::search_targets(GraphPlanResult& result, const LaunchUnits& units, Targets& all,
                                  const ClocksFor& clocks_for, const RunContext& context) {
  const std::size_t at = all.of_deadline.at(result.deadline_s);
  double late = 0.0;
  for (std::size_t k = 0; k < shorter.size() && !context.stop_requested(); ++k) {
    const FrontierPlan* target = all.beside.at(at, k, context);
    if (target == nullptr) return;
    auto clocks = clocks_for(*target, result.deadline_s * (1.0 - shorter[k]));
    if (!clocks) return;
    if (!keep_if_better(result, plan_of(units, *clocks))) {
      late = shorter[k];
      if (k == 0) repair(result, units, std::move(*clocks), context);
      continue;
    }
    if (k == 0) return;
    double in_time = shorter[k];
    for (int i = 0; i < halvings; ++i) {
      const double middle = 0.5 * (in_time + late);
      clocks = clocks_for(*target, result.deadline_s * (1.0 - middle));
      if (!clocks) return;
      const bool ends_in_time = keep_if_better(result, plan_of(units, *clocks));
      (ends_in_time ? in_time : late) = middle;
    }
    return;
  }
}

// A clock for each GPU is a sequence too, where the launches of its main stream ask for it.
void GraphPlanner::answer_automatic(GraphPlanResult& result, Targets& all,
                                    const RunContext& context) {
  if (model_.graph().gpus().size() > 1) {
    GraphPlanResult each_gpu;
    each_gpu.question = {GraphGrain::gpu, result.question.slack_frac};
    each_gpu.deadline_s = result.deadline_s;
    try_uniform(each_gpu);
    answer(each_gpu, all, context);
    if (each_gpu.found()) keep_if_better(result, each_gpu.plan);
  }
  const auto prices = [](const FrontierPlan& of) {
    return LaunchPrices{of.flow_w, of.lag_cost_j, of.price_w};
  };
  const std::size_t at = all.of_deadline.at(result.deadline_s);
  std::optional<SequencePlan> start;
  if (result.found()) start = SequencePlan{std::move(result.plan), std::move(result.run)};
  auto found = sequence_plan(
      {beside_, grid_, defaults_, repeats_of(result.question), result.switching, result.deadline_s},
      simulator_, prices(*all.beside.at(at, 0, context)), std::move(start), context);
  if (!found) {
    result.lower_bound_j = bound_j(result.deadline_s);
    return;
  }
  result.plan = std::move(found->plan);
  result.run = std::move(found->run);
  const double bound = sequence_bound_j(alone_, grid_, result.switching, prices(all.alone[at]),
                                        {result.deadline_s, prices_->frontier.least_time_s},
                                        result.run.total_energy_j, context);
  result.lower_bound_j = std::max(bound_j(result.deadline_s), bound);
}

void GraphPlanner::answer(GraphPlanResult& result, Targets& all, const RunContext& context) {
  const GraphGrain grain = result.question.grain;
  const LaunchUnits units = units_of(result.question);
  const double least_s = prices_->rounder.least_time_s();
  const FrontierPlan& alone = all.alone[all.of_deadline.at(result.deadline_s)];
  const double held_j = held_.least_j(result.deadline_s);
  result.lower_bound_j = bound_j(result.deadline_s) + held_j;
  const bool each_launch = std::ranges::none_of(repeats_of(result.question).steps,
                                                [](std::uint32_t steps) { return steps > 1; });
  if (grain == GraphGrain::launch && each_launch) {
    search_targets(
        result, units, all,
        [&](const FrontierPlan& target, double limit_s) -> std::optional<std::vector<ClockId>> {
          // Times of the frontier are cut to steps: its own durations may end a little later.
          const double target_s = target.time_s * (1.0 + time_tolerance);
          const double end_s = std::max(std::min(limit_s, target_s), least_s);
          const auto rounded = prices_->rounder.round(target.duration_s, end_s);
          if (!rounded) return std::nullopt;
          std::vector<ClockId> clock_of_unit(units.size());
          for (std::uint32_t u = 0; u < units.size(); ++u) {
            const std::uint32_t launch = units.members(u).front();
            clock_of_unit[u] =
                beside_.useful_clocks(launch)[index(rounded->option_of_pass[launch])];
          }
          return clock_of_unit;
        },
        context);
    return;
  }
  result.lower_bound_j =
      std::max(result.lower_bound_j,
               held_j + unit_bound_j(alone_, units, {alone.flow_w, alone.lag_cost_j, alone.price_w},
                                     {result.deadline_s, prices_->frontier.least_time_s}, context));
  search_targets(
      result, units, all,
      [&](const FrontierPlan& target, double limit_s) -> std::optional<std::vector<ClockId>> {
        UnitPlan found =
            search_units(beside_, units, {target.flow_w, target.lag_cost_j, target.price_w},
                         {std::max(limit_s, least_s), least_s}, context);
        if (found.clock_of_unit.empty()) return std::nullopt;
        return std::move(found.clock_of_unit);
      },
      context);
}

// Durations and prices for every deadline, and for somewhat less time each.
GraphPlanner::Targets GraphPlanner::targets_for(std::span<const GraphPlanResult> results,
                                                const RunContext& context) {
  std::map<double, std::size_t> of_deadline;
  std::vector<double> deadlines_s, alone_s;
  for (const GraphPlanResult& result : results) {
    if (of_deadline.emplace(result.deadline_s, deadlines_s.size()).second)
      deadlines_s.push_back(result.deadline_s);
  }
  prepare(deadlines_s, context);
  for (const double deadline_s : deadlines_s)
    alone_s.push_back(std::min(deadline_s, cheapest_time_s()));
  std::vector<FrontierPlan> alone =
      alone_s == prices_->times_s
          ? prices_->frontier.plans
          : prices_->sweeps.sweep(prices_->alone, alone_s, 0.0, context).plans;
  return {std::move(of_deadline),
          std::move(alone),
          {prices_->sweeps, crash_problem(prices_->work), std::move(alone_s), shorter}};
}

std::vector<GraphPlanResult> GraphPlanner::plan(std::span<const GraphQuestion> questions,
                                                const RunContext& context) {
  std::vector<GraphPlanResult> results;
  for (const GraphQuestion& question : questions) {
    results.emplace_back().question = question;
    results.back().deadline_s = deadline_s(question);
    if (question.grain != GraphGrain::automatic) continue;
    SwitchModel& switching = results.back().switching = *switching_;
    switching.dwell_s = std::max(switching.dwell_s, question.dwell_s);
  }
  const bool many_clocks = std::ranges::any_of(
      questions, [](const GraphQuestion& q) { return q.grain != GraphGrain::iteration; });
  std::optional<Targets> targets;
  if (many_clocks) {
    targets.emplace(targets_for(results, context));
    (void)targets->beside.at(0, 0, context);  // whoever stops that has no answer
  }

  // Coarser plans first: they are plans of the finer grains too.
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_by(order, [&](std::size_t q) { return questions[q].grain; });
  for (const std::size_t q : order) {
    GraphPlanResult& result = results[q];
    for (const GraphPlanResult& coarser : results) {
      if (coarser.found() && coarser.deadline_s <= result.deadline_s &&
          coarser.question.grain <= result.question.grain)
        keep_if_better(result, coarser.plan);
    }
    try_uniform(result);
    if (context.stop_requested()) {  // what is known by now, without a bound
      result.status = SolveStatus::time_limit;
      result.gap_frac = 1.0;
      continue;
    }
    if (questions[q].grain == GraphGrain::iteration) {
      // All there are were tried.
      result.lower_bound_j = result.run.total_energy_j;
      if (result.found()) result.status = SolveStatus::optimal;
      continue;
    }
    if (questions[q].grain == GraphGrain::automatic) {
      answer_automatic(result, *targets, context);
    } else {
      answer(result, *targets, context);
    }
    if (!result.found()) continue;
    const double energy_j = result.run.total_energy_j;
    result.gap_frac = std::max(energy_j - result.lower_bound_j, 0.0) / energy_j;
    result.status = result.gap_frac <= optimal_gap_frac ? SolveStatus::optimal
                    : context.stop_requested()          ? SolveStatus::time_limit
                                                        : SolveStatus::feasible;
  }
  return results;
}

}  // namespace rubato
