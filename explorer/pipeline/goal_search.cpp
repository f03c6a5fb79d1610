#include "explorer/pipeline/goal_search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "explorer/plan/goal_bound.hpp"

namespace rubato {

namespace {

// Times to plan for first, beside those given: around where the frontier has the goal least, and
// from the fastest plan to that of least energy, since few switches may fit there.
std::vector<double> first_times(const PipelinePlanner& planner, double least_at_s,
                                std::vector<double> times_s) {
  constexpr double around_frac = 0.02;
  constexpr int across = 12;
  for (const double share : {1.0 - around_frac, 1.0, 1.0 + around_frac})
    times_s.push_back(share * least_at_s);
  for (int i = 0; i <= across; ++i) {
    times_s.push_back(std::lerp(planner.least_time_s(), planner.cheapest_time_s(),
                                static_cast<double>(i) / across));
  }
  return times_s;
}

}  // namespace

PipelineResult plan_of_goal(const PipelinePlanner& planner, const Goal& goal,
                            const PlanJudge& judge, const PlansFor& plans_for,
                            std::vector<double> first_s, std::span<const PipelineResult> known,
                            const RunContext& context) {
  const int rounds = std::holds_alternative<LeastTime>(goal) ? 7 : 2;
  const double gpus = planner.work().schedule.shape.stages;
  const Cost defaults{planner.baseline().time_s, planner.baseline().energy_j};
  const auto judged = [&](const PipelineResult& plan) {
    return contender(
        goal, plan.found() ? std::optional(Cost{plan.run.time_s, plan.energy_j}) : std::nullopt,
        defaults, gpus);
  };
  const GoalBound bound = goal_bound(
      goal, planner.least_time_s(), planner.frontier().slowest_time_s,
      [&](double from_s, double to_s) {
        return planner.frontier().lower_bound_j(to_s) + planner.waiting_power_w() * from_s;
      },
      defaults, gpus);
  std::map<double, PipelineResult> plans;
  const auto ask = [&](std::vector<double> times_s) {
    std::erase_if(times_s, [&](double time_s) { return time_s < planner.least_time_s(); });
    const std::vector<PipelineResult> asked = plans_for(times_s);
    for (std::size_t i = 0; i < asked.size(); ++i) plans.emplace(times_s[i], asked[i]);
  };
  ask(first_times(planner, bound.time_s, std::move(first_s)));
  const auto least = [&] {
    return std::ranges::min_element(plans, {}, [&](const auto& plan) {
      const Contender one = judged(plan.second);
      return std::tuple(!one.holds, !one.holds || !judge(plan.second).applicable,
                        one.objective_frac);
    });
  };
  for (int i = 0; i < rounds && !context.stop_requested(); ++i) {
    const auto chosen = least();
    std::vector<double> beside_s;
    if (chosen != plans.begin())
      beside_s.push_back(0.5 * (std::prev(chosen)->first + chosen->first));
    if (std::next(chosen) != plans.end())
      beside_s.push_back(0.5 * (std::next(chosen)->first + chosen->first));
    ask(std::move(beside_s));
  }
  PipelineResult best = std::move(least()->second);
  Contender one = judged(best);
  for (const PipelineResult& plan : known) {
    const Contender other = judged(plan);
    if (!other.holds || !judge(plan).applicable) continue;
    if (one.holds && (!judge(best).applicable || one.objective_frac <= other.objective_frac))
      continue;
    best = plan;
    one = other;
  }
  if (!one.holds) best = {};
  best.goal = goal;
  if (!best.found()) return best;
  best.deadline_s = best.run.time_s;
  best.lower_bound_j = 0.0;
  best.gap_frac = std::max(0.0, 1.0 - bound.least_frac / one.objective_frac);
  best.verdict = judge(best);
  return best;
}

}  // namespace rubato
