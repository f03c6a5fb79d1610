#include "explorer/pipeline/goal_plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace rubato {

namespace {

Contender judged(const PipelinePlanner& planner, const PipelineGoal& wanted,
                 const PipelineResult& plan) {
  return contender(
      wanted.goal,
      plan.found() ? std::optional(wanted.cost_of(plan.run.time_s, plan.energy_j)) : std::nullopt,
      wanted.defaults(planner), wanted.gpus);
}

}  // namespace

GoalBound bound_of(const PipelinePlanner& planner, const PipelineGoal& wanted) {
  const Frontier& frontier = planner.frontier();
  const auto least_j = [&](double from_s, double to_s) {
    return (frontier.lower_bound_j(to_s) + planner.waiting_power_w() * from_s) / wanted.of_stages;
  };
  return goal_bound(wanted.goal, planner.least_time_s(), frontier.slowest_time_s, least_j,
                    wanted.defaults(planner), wanted.gpus);
}

// Plans are made around the time at which the frontier has the goal least, then half-way to the
// neighbours of the best one: more often for a budget, which has an edge.
PipelineResult plan_for(const PipelinePlanner& planner, const PipelineGoal& wanted,
                        const RunContext& context) {
  const int rounds = std::holds_alternative<LeastTime>(wanted.goal) ? 7 : 2;
  constexpr double around_frac = 0.02;
  std::map<double, PipelineResult> plans;
  const auto ask = [&](std::vector<double> times_s) {
    std::erase_if(times_s, [&](double time_s) { return time_s < planner.least_time_s(); });
    const std::vector<PipelineResult> asked = planner.plan(times_s, AfterEnd::go_on, context);
    for (std::size_t i = 0; i < asked.size(); ++i) plans.emplace(times_s[i], asked[i]);
  };
  const GoalBound bound = bound_of(planner, wanted);
  ask({planner.least_time_s(), (1.0 - around_frac) * bound.time_s, bound.time_s,
       (1.0 + around_frac) * bound.time_s, planner.cheapest_time_s()});
  const auto least = [&] {
    return std::ranges::min_element(plans, {}, [&](const auto& plan) {
      const Contender one = judged(planner, wanted, plan.second);
      return std::tuple(!one.holds, !one.holds || !wanted.can_be_set(plan.second),
                        one.objective_frac);
    });
  };
  for (int i = 0; i < rounds; ++i) {
    const auto chosen = least();
    std::vector<double> beside_s;
    if (chosen != plans.begin())
      beside_s.push_back(0.5 * (std::prev(chosen)->first + chosen->first));
    if (std::next(chosen) != plans.end())
      beside_s.push_back(0.5 * (std::next(chosen)->first + chosen->first));
    ask(std::move(beside_s));
  }
  PipelineResult best = least()->second;
  const Contender one = judged(planner, wanted, best);
  if (!one.holds) best = {};
  best.goal = wanted.goal;
  if (best.found()) best.gap_frac = std::max(0.0, 1.0 - bound.least_frac / one.objective_frac);
  return best;
}

}  // namespace rubato
