#include "explorer/graph/planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/graph/contention/planner_prices.hpp"
#include "explorer/graph/sequence_bound.hpp"
#include "explorer/graph/sequence_search.hpp"
#include "explorer/plan/defaults.hpp"

namespace rubato {

namespace {

// Kernels that run at the same time slow each other down. Solvers know that only as it was at the
// default clocks. So they are asked for plans that end earlier, by these shares of the deadline,
// until the simulator finds one in time.
constexpr std::array shorter{0.0,   0.0005, 0.001, 0.002, 0.004, 0.008, 0.016,
                             0.032, 0.064,  0.1,   0.16,  0.25,  0.4};
constexpr int most_repairs = 60;  // replays of a late plan while it is sped up

bool may_stall(const SwitchModel& switching) {
  return switching.core.stall_s > 0.0 || (switching.mem && switching.mem->stall_s > 0.0);
}

}  // namespace

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
      repeats_(step_repeats(alone_)) {
  if (switching_) validate(*switching_);
}

GraphPlanner::~GraphPlanner() = default;

void GraphPlanner::prepare(std::vector<double> times_s, const RunContext& context) {
  if (!prices_)
    prices_ = std::make_unique<Prices>(alone_, beside_, grid_, std::move(times_s), context);
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
  if (question.grain == Granularity::automatic && !switching_)
    throw UsageError("automatic plans need to know what changes of clock take");
  return baseline_.span_s * (1.0 + question.slack_frac);
}

double GraphPlanner::bound_j(double deadline_s) const {
  return bound_of_launches_j(prices_->frontier, deadline_s);
}

Frontier GraphPlanner::frontier_of_no_question() const {
  return LaunchFrontiers().sweep(Contraction(crash_problem(launch_work(alone_))), {}, all_prices,
                                 {});
}

// The time to plan for: no longer than where launches and idle power together take least.
double GraphPlanner::target_s(double deadline_s) const {
  const std::vector<FrontierVertex>& vertices = prices_->frontier.vertices;
  const auto dear = [&](const FrontierVertex& v) { return v.price_w >= alone_.least_idle_w(); };
  const auto cheapest = std::ranges::find_if(vertices, dear);
  return std::min(deadline_s,
                  cheapest == vertices.end() ? vertices.back().time_s : cheapest->time_s);
}

LaunchUnits GraphPlanner::units_of(const GraphQuestion& question) const {
  using Key = std::array<std::uint32_t, 4>;
  const ExecutionGraph& graph = model_.graph();
  const Granularity grain = question.grain;
  const StepRepeats& repeats = repeats_;
  std::vector<std::uint32_t> unit_of_activity(graph.size(), 0);
  std::map<Key, std::uint32_t> known;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (!alone_.is_clocked(i)) continue;
    const std::uint32_t played = grain >= Granularity::launch ? repeats.played[i] : i;
    const Activity& activity = graph.activities()[played];
    Key key{};
    if (grain >= Granularity::gpu) key[0] = graph.gpu_of(activity)->value;
    if (grain >= Granularity::pass) key[1] = static_cast<std::uint32_t>(activity.pass);
    if (grain >= Granularity::kernel) key[2] = activity.kernel.value;
    if (grain >= Granularity::launch) key[3] = played;
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
  if (result.question.grain == Granularity::automatic) plan.only_main_streams_ask = true;
  GraphRun run = simulator_.run(plan, {.switching = result.switching});
  return keep_if_better(result, std::move(plan), std::move(run));
}

bool GraphPlanner::keep_if_better(GraphPlanResult& result, GraphPlan plan, GraphRun run) const {
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

// Tries the whole time, then shorter ones, until the simulator finds a plan in time. If the first
// plan is late, it is repaired too.
void GraphPlanner::search_targets(GraphPlanResult& result, const LaunchUnits& units,
                                  const ClocksFor& clocks_for, const RunContext& context) {
  const double before_s = target_s(result.deadline_s);
  for (std::size_t k = 0; k < shorter.size() && !context.stop_requested(); ++k) {
    const FrontierPlan* target = targets_->beside.at(before_s, k, context);
    if (target == nullptr) return;
    auto clocks = clocks_for(*target, result.deadline_s * (1.0 - shorter[k]));
    if (!clocks || keep_if_better(result, plan_of(units, *clocks))) return;
    if (k == 0) repair(result, units, std::move(*clocks), context);
  }
}

void GraphPlanner::answer_automatic(GraphPlanResult& result, double prices_at_s,
                                    const RunContext& context) {
  const double before_s = target_s(prices_at_s);
  const double share = 1.0 - target_s(result.deadline_s) / before_s;
  const auto nearest =
      std::ranges::min_element(shorter, {}, [&](double known) { return std::abs(known - share); });
  const FrontierPlan* near =
      targets_->beside.at(before_s, static_cast<std::size_t>(nearest - shorter.begin()), context);
  if (near == nullptr) return;
  std::optional<SequencePlan> start;
  if (result.found()) start = SequencePlan{std::move(result.plan), std::move(result.run)};
  auto found = sequence_plan(
      {beside_, grid_, defaults_, uniform_, repeats_, result.switching, result.deadline_s},
      simulator_, prices_of(*near), std::move(start), context);
  if (!found) return;
  result.plan = std::move(found->plan);
  result.run = std::move(found->run);
}

bool GraphPlanner::shares_no_clocks(const GraphQuestion& question) const {
  return question.grain == Granularity::launch &&
         std::ranges::none_of(repeats_.steps, [](std::uint32_t steps) { return steps > 1; });
}

std::optional<std::vector<ClockId>> GraphPlanner::local_clocks(const LaunchUnits& units,
                                                               const Goal& goal) const {
  if (units.size() == 0) return std::vector<ClockId>{};
  const std::size_t clocks = grid_.size(), kernels = model_.graph().kernels().size();
  std::vector<Cost> launched;  // one launch of each kernel alone, shape [kernels() x clocks]
  for (std::size_t k = 0; k < beside_.kernels(); ++k) {
    for (const ClockPair& clock : grid_.pairs()) {
      const OperatingPoint point =
          model_.evaluate(id_at<KernelId>(k % kernels), clock, id_at<ThrottleId>(k / kernels));
      launched.push_back({point.time_s, point.energy_j + model_.host_power_w() * point.time_s});
    }
  }
  std::vector<double> time_s(units.size() * clocks), energy_j(time_s.size());
  for (std::uint32_t u = 0; u < units.size(); ++u) {
    for (const std::uint32_t launch : units.members(u)) {
      for (std::size_t c = 0; c < clocks; ++c) {
        const Cost& one = launched[beside_.kernel_of(launch) * clocks + c];
        time_s[u * clocks + c] += beside_.time_s(launch, id_at<ClockId>(c));
        energy_j[u * clocks + c] += model_.work()[launch] * one.energy_j;
      }
    }
  }
  Solution solution = solve_local({units.size(), clocks, std::move(time_s), std::move(energy_j)},
                                  goal, grid_.default_clock());
  if (solution.clock_of_unit.empty()) return std::nullopt;
  return std::move(solution.clock_of_unit);
}

GraphPlan GraphPlanner::local_plan(const GraphQuestion& question, const Goal& goal) const {
  const LaunchUnits units = units_of(question);
  const auto clocks = local_clocks(units, goal);
  return clocks ? plan_of(units, *clocks) : GraphPlan{};
}

void GraphPlanner::answer(GraphPlanResult& result, const RunContext& context) {
  const LaunchUnits units = units_of(result.question);
  if (result.question.is_local()) {
    // Launches that are in time are a run in time, unless they slow each other down.
    auto clocks = local_clocks(units, LeastWaste{result.question.slack_frac});
    if (clocks) repair(result, units, std::move(*clocks), context);
    return;
  }
  const double least_s = prices_->rounder.least_time_s();
  if (shares_no_clocks(result.question)) {
    search_targets(
        result, units,
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
    return share_gpus(result, units, context);
  }
  search_targets(
      result, units,
      [&](const FrontierPlan& target, double limit_s) -> std::optional<std::vector<ClockId>> {
        UnitPlan found = search_units(beside_, units, prices_of(target),
                                      {std::max(limit_s, least_s), least_s}, context);
        if (found.clock_of_unit.empty()) return std::nullopt;
        return std::move(found.clock_of_unit);
      },
      context);
  share_gpus(result, units, context);
}

// The bound of launches alone.
// @param prices_at_s  deadline of a question asked, whose prices the search for it starts from
double GraphPlanner::bound_apart_j(const GraphPlanResult& result, double prices_at_s,
                                   const HeldEnergy& held, const RunContext& context) const {
  const FrontierPlan& alone = targets_->alone.at(prices_at_s);
  const UnitDeadline deadline{result.deadline_s, prices_->frontier.least_time_s};
  const double launches_j = bound_j(result.deadline_s);
  const bool stalls = may_stall(result.switching);
  const double held_j = held.least_j(result.deadline_s, stalls);
  if (result.question.grain == Granularity::automatic && result.found()) {
    const double known_j = result.run.total_energy_j - held_j;
    return held_j +
           std::max(launches_j, sequence_bound_j(alone_, grid_, result.switching, prices_of(alone),
                                                 deadline, known_j, context));
  }
  if (result.question.grain == Granularity::automatic || shares_no_clocks(result.question))
    return launches_j + held_j;
  return held_j + std::max(launches_j, unit_bound_j(alone_, units_of(result.question),
                                                    prices_of(alone), deadline, context));
}

bool GraphPlanner::limited_together() const noexcept {
  return prices_ && prices_->contended.jointly_limited();
}

// The higher of the bound of launches alone and of the one that knows what runs beside what.
double GraphPlanner::lower_bound_j(const GraphPlanResult& result, const RunContext& context) {
  // Every single clock was tried.
  if (result.question.grain == Granularity::iteration) return result.run.total_energy_j;
  const double apart_j = bound_apart_j(result, result.deadline_s, prices_->held, context);
  if (!prices_->contended.matters()) return apart_j;
  const FrontierPlan* prices = targets_->beside.at(target_s(result.deadline_s), 0, context);
  if (prices == nullptr) return apart_j;
  const bool automatic = result.question.grain == Granularity::automatic;
  const bool stalls = may_stall(result.switching);
  std::optional<LaunchUnits> units;
  if (!automatic && !shares_no_clocks(result.question)) units.emplace(units_of(result.question));
  const double together_j = prices_->contended.least_j(
      {result.deadline_s, prices_->frontier.least_time_s, automatic, stalls},
      arc_flow(model_.graph(), prices->arc_flow_w), units ? &*units : nullptr, context);
  // At a power limit that they reach together, launches may take less than alone at any clock.
  const double bound_j = prices_->held.least_j(result.deadline_s, stalls) + together_j;
  return limited_together() ? bound_j : std::max(bound_j, apart_j);
}

// Durations and prices for every deadline, and for somewhat less time than each.
GraphPlanner::Targets GraphPlanner::targets_for(std::span<const GraphPlanResult> results,
                                                const RunContext& context) {
  std::set<double> deadlines_s;
  for (const GraphPlanResult& result : results) deadlines_s.insert(result.deadline_s);
  prepare({deadlines_s.begin(), deadlines_s.end()}, context);
  std::vector<double> alone_s;
  for (const double deadline_s : deadlines_s) alone_s.push_back(target_s(deadline_s));
  std::vector<FrontierPlan> alone =
      alone_s == prices_->times_s
          ? prices_->frontier.plans
          : LaunchFrontiers().sweep(prices_->alone, alone_s, 0.0, context).plans;
  Targets targets{{}, {crash_problem(prices_->work), shorter}};
  std::size_t next = 0;
  for (const double deadline_s : deadlines_s) {
    targets.beside.add(alone_s[next]);
    targets.alone.emplace(deadline_s, std::move(alone[next++]));
  }
  return targets;
}

GraphPlanResult GraphPlanner::begun(const GraphQuestion& question) const {
  GraphPlanResult result;
  result.question = question;
  result.deadline_s = deadline_s(question);
  if (question.grain != Granularity::automatic) return result;
  result.switching = with_long_stretches(*switching_);
  result.switching.dwell_s = std::max(result.switching.dwell_s, question.dwell_s);
  return result;
}

GraphPlanResult GraphPlanner::plan_more(const GraphQuestion& question, const GraphPlanResult& asked,
                                        std::span<const GraphPlanResult* const> known,
                                        const RunContext& context) {
  GraphPlanResult result = begun(question);
  if (question.grain == Granularity::automatic) {
    for (const GraphPlanResult* one : known) {
      if (one->found() && one->deadline_s <= result.deadline_s) keep_if_better(result, one->plan);
    }
  }
  try_uniform(result);
  if (question.grain == Granularity::automatic && !context.stop_requested())
    answer_automatic(result, asked.deadline_s, context);
  return result;
}

}  // namespace rubato
