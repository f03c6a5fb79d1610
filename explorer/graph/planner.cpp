#include "explorer/graph/planner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/graph/sequences/sequence_bound.hpp"
#include "explorer/graph/sequences/sequence_search.hpp"
#include "explorer/plan/defaults.hpp"

namespace rubato {

namespace {

constexpr int most_repairs = 6;  // replays of a late plan while it is sped up

// Cost and priced time of units at every clock.
class PricedUnits {
 public:
  PricedUnits(const LaunchCosts& costs, const LaunchUnits& units, const LaunchPrices& prices)
      : clocks_(costs.clocks()), sums_(units.size() * clocks_) {
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      for (const std::uint32_t launch : units.members(u)) {
        for (std::size_t c = 0; c < clocks_; ++c) {
          Sum& sum = sums_[u * clocks_ + c];
          sum.cost_j += costs.cost_j(launch, id_at<ClockId>(c));
          sum.time_j += prices.flow_w[launch] * costs.time_s(launch, id_at<ClockId>(c));
        }
      }
    }
  }

  // For each unit the clock with the least cost + factor x priced time.
  [[nodiscard]] std::vector<ClockId> cheapest(double factor) const {
    std::vector<ClockId> clock_of_unit;
    const auto step = static_cast<std::ptrdiff_t>(clocks_);
    for (auto unit = sums_.begin(); unit != sums_.end(); unit += step) {
      const auto least = std::ranges::min_element(
          unit, unit + step, {}, [&](const Sum& sum) { return sum.cost_j + factor * sum.time_j; });
      clock_of_unit.push_back(id_at<ClockId>(static_cast<std::size_t>(least - unit)));
    }
    return clock_of_unit;
  }

 private:
  struct Sum {
    double cost_j = 0.0, time_j = 0.0;
  };

  std::size_t clocks_;
  std::vector<Sum> sums_;  // shape [units x clocks]
};

// All prices have one factor: the least with which the plan ends in time is searched for.
// @param in_time  keeps a plan if it is better, and says whether it ends in time
void search_factors(const LaunchCosts& costs, const LaunchUnits& units, const LaunchPrices& prices,
                    const std::function<bool(const std::vector<ClockId>&)>& in_time,
                    const RunContext& context) {
  constexpr int factors = 12;
  constexpr double wider = 1.5;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const PricedUnits priced(costs, units, prices);
  double low = 0.0, high = unknown, factor = 1.0;
  for (int i = 0; i < factors && !context.stop_requested(); ++i) {
    (in_time(priced.cheapest(factor)) ? high : low) = factor;
    factor = high == unknown ? factor * wider : low == 0.0 ? factor / wider : std::sqrt(low * high);
  }
}

}  // namespace

struct GraphPlanner::Prices {
  Prices(const LaunchCosts& alone_costs, const LaunchCosts& beside_costs, double around_s,
         const RunContext& context)
      : alone(crash_problem(launch_work(alone_costs)), around_s, alone_costs.least_idle_w(),
              1'000'000, context),
        work(launch_work(beside_costs)),
        rounder(work),
        beside(crash_problem(work), around_s, alone_costs.least_idle_w(), 100'000, context) {}

  // Of launches alone, for bounds; and of launches as slow as beside each other at the default
  // clocks, for plans. The prices of these choose clocks only, so rounded ones will do sooner.
  LaunchFrontier alone;
  PipelineWork work;  // as slow as beside each other
  ClockRounder rounder;
  LaunchFrontier beside;
};

GraphPlanner::GraphPlanner(const GraphModel& model, const ClockGrid& grid,
                           const RunContext& context, const std::optional<SwitchModel>& switching,
                           const GraphRun* baseline)
    : model_(model),
      grid_(grid),
      switching_(switching),
      simulators_(model, grid),
      defaults_(simulators_.run(uniform_plan(model.graph(), grid.default_clock()))),
      baseline_(baseline != nullptr ? *baseline : defaults_),
      uniform_(sweep_uniform(model, grid, context)),
      alone_(LaunchCosts::for_bounds(model, grid)),
      beside_(model, grid, slowdown_in(LaunchCosts(model, grid), defaults_, grid.default_clock())),
      repeats_(step_repeats(alone_)) {
  if (switching_) validate(*switching_);
}

GraphPlanner::~GraphPlanner() = default;

void GraphPlanner::prepare(const RunContext& context) {
  if (!prices_) prices_ = std::make_unique<Prices>(alone_, beside_, baseline_.span_s, context);
}

const Frontier& GraphPlanner::frontier(const RunContext& context) {
  prepare(context);
  return prices_->alone.frontier();
}

double GraphPlanner::bound_of_launches_j(double time_s, const RunContext& context) {
  return rubato::bound_of_launches_j(frontier(context), alone_.least_idle_w(), time_s);
}

double GraphPlanner::deadline_s(const GraphQuestion& question) const {
  if (!(question.slack_frac > -1.0) || !std::isfinite(question.slack_frac)) {
    throw UsageError(
        fmt::format("slack is {}; expected a number above -100 %", 100.0 * question.slack_frac));
  }
  if (question.grain == Granularity::segment && !switching_)
    throw UsageError("automatic plans need to know what switches take");
  return baseline_.span_s * (1.0 + question.slack_frac);
}

double GraphPlanner::bound_j(double deadline_s) const {
  return rubato::bound_of_launches_j(prices_->alone.frontier(), alone_.least_idle_w(), deadline_s);
}

// The time to plan for: no longer than where launches and idle power together take least.
double GraphPlanner::target_s(double deadline_s) const {
  const std::vector<FrontierVertex>& vertices = prices_->alone.frontier().vertices;
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
  if (result.question.grain == Granularity::segment) plan.only_main_streams_ask = true;
  GraphRun run = simulators_.run(plan, {.switching = result.switching});
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
    const GraphRun run = simulators_.run(plan);
    const double late_s = run.span_s - result.deadline_s;
    if (late_s <= time_tolerance * result.deadline_s) {
      keep_if_better(result, std::move(plan));
      return;
    }
    if (!speed_up_latest_path(beside_, units, {run.start_s, run.end_s}, late_s, clock_of_unit))
      return;
  }
}

// Plans for launches as slow as beside each other at the default clocks. What the simulator finds
// late is repaired.
void GraphPlanner::search_target(GraphPlanResult& result, const LaunchUnits& units,
                                 const ClocksFor& clocks_for, const RunContext& context) {
  const auto target = prices_->beside.plan_within(target_s(result.deadline_s));
  if (!target) return;
  auto clocks = clocks_for(*target, std::max(result.deadline_s, prices_->rounder.least_time_s()));
  if (clocks && !keep_if_better(result, plan_of(units, *clocks)))
    repair(result, units, std::move(*clocks), context);
}

void GraphPlanner::answer_automatic(GraphPlanResult& result, const RunContext& context) {
  const auto near = prices_->beside.plan_within(target_s(result.deadline_s));
  if (!near) return;
  std::optional<SequencePlan> start;
  if (result.found()) start = SequencePlan{std::move(result.plan), std::move(result.run)};
  auto found = simulators_.with([&](GraphSimulator& simulator) {
    return sequence_plan({beside_, grid_, defaults_, repeats_, result.switching, result.deadline_s},
                         simulator, prices_of(*near), std::move(start), context);
  });
  if (!found) return;
  result.plan = std::move(found->plan);
  result.run = std::move(found->run);
}

bool GraphPlanner::shares_no_clocks(const GraphQuestion& question) const {
  return question.grain == Granularity::launch &&
         std::ranges::none_of(repeats_.steps, [](std::uint32_t steps) { return steps > 1; });
}

// The best of what single clocks and its own search find. The same question is asked again beside
// others, and while odds are looked for.
void GraphPlanner::answer(GraphPlanResult& result, const RunContext& context) {
  {
    const std::scoped_lock lock(answers_mutex_);
    const auto known = std::ranges::find(answers_, result.question, &GraphPlanResult::question);
    if (known != answers_.end()) {
      result = *known;
      return;
    }
  }
  if (!result.question.is_local()) try_uniform(result);
  if (context.stop_requested()) return;
  search_answer(result, context);
  if (context.stop_requested()) return;
  const std::scoped_lock lock(answers_mutex_);
  answers_.push_back(result);
}

void GraphPlanner::search_answer(GraphPlanResult& result, const RunContext& context) {
  const LaunchUnits units = units_of(result.question);
  if (result.question.is_local()) {
    // Launches that are in time are a run in time, unless they slow each other down.
    auto clocks = local_clocks(units, LeastWaste{result.question.slack_frac});
    if (clocks) repair(result, units, std::move(*clocks), context);
    return;
  }
  if (shares_no_clocks(result.question)) {
    search_target(
        result, units,
        [&](const FrontierPlan& target, double limit_s) -> std::optional<std::vector<ClockId>> {
          const auto rounded = prices_->rounder.round(target.duration_s, limit_s);
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
  } else {
    search_target(
        result, units,
        [&](const FrontierPlan& target, double limit_s) -> std::optional<std::vector<ClockId>> {
          UnitPlan found = search_units(beside_, units, prices_of(target),
                                        {limit_s, prices_->rounder.least_time_s()}, context);
          if (found.clock_of_unit.empty()) return std::nullopt;
          return std::move(found.clock_of_unit);
        },
        context);
  }
  const auto near = prices_->beside.plan_within(target_s(result.deadline_s));
  if (!near || !result.found()) return;
  search_factors(
      beside_, units, prices_of(*near),
      [&](const std::vector<ClockId>& clocks) {
        return keep_if_better(result, plan_of(units, clocks));
      },
      context);
}

// The bound of launches alone.
double GraphPlanner::bound_apart_j(const GraphPlanResult& result, double deadline_s,
                                   const RunContext& context) const {
  const auto alone = prices_->alone.plan_within(target_s(deadline_s));
  const UnitDeadline deadline{deadline_s, prices_->alone.frontier().least_time_s};
  const double launches_j = bound_j(deadline_s);
  if (!alone || shares_no_clocks(result.question)) return launches_j;
  if (result.question.grain != Granularity::segment)
    return std::max(launches_j, unit_bound_j(alone_, units_of(result.question), prices_of(*alone),
                                             deadline, context));
  if (!result.found()) return launches_j;
  return std::max(launches_j, sequence_bound_j(alone_, grid_, result.switching, prices_of(*alone),
                                               deadline, context));
}

// @param deadline_s  that of the plan or, but for one clock for all, a longer one
double GraphPlanner::lower_bound_j(const GraphPlanResult& result, double deadline_s,
                                   const RunContext& context) const {
  // Every single clock was tried.
  if (result.question.grain == Granularity::run) return result.run.total_energy_j;
  return bound_apart_j(result, deadline_s, context);
}

GraphPlanResult GraphPlanner::begun(const GraphQuestion& question) const {
  GraphPlanResult result;
  result.question = question;
  result.deadline_s = deadline_s(question);
  if (question.grain != Granularity::segment) return result;
  result.switching = with_long_stretches(*switching_);
  return result;
}

GraphPlanResult GraphPlanner::plan_more(const GraphQuestion& question,
                                        std::span<const GraphPlanResult* const> known,
                                        const RunContext& context) {
  GraphPlanResult result = begun(question);
  if (question.grain == Granularity::segment) {
    for (const GraphPlanResult* one : known) {
      if (one->found() && one->deadline_s <= result.deadline_s) keep_if_better(result, one->plan);
    }
  }
  try_uniform(result);
  if (question.grain == Granularity::segment && !context.stop_requested())
    answer_automatic(result, context);
  return result;
}

}  // namespace rubato
