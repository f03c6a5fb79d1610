#pragma once
// Plans of a pipeline for goals other than least energy by a deadline: EDP, ED2P, least energy in
// any time, least time within a budget, least cost.

#include <functional>

#include "explorer/pipeline/planner.hpp"
#include "explorer/plan/goal_bound.hpp"

namespace rubato {

/// What a plan of a pipeline is wanted for.
struct PipelineGoal {
  Goal goal;               ///< any but LeastWaste
  double of_stages = 1.0;  ///< energies are of the sum over all stages, divided by this, > 0
  double gpus = 1.0;       ///< in these energies
  std::function<bool(const PipelineResult&)> can_be_set;  ///< such plans come first

  [[nodiscard]] Cost cost_of(double time_s, double energy_j) const {
    return {time_s, energy_j / of_stages};
  }
  /// Of all passes at their highest clocks.
  [[nodiscard]] Cost defaults(const PipelinePlanner& planner) const {
    return cost_of(planner.baseline().time_s, planner.baseline().energy_j);
  }
};

/// The least that the goal may come to, from the frontier's lower bound.
[[nodiscard]] GoalBound bound_of(const PipelinePlanner& planner, const PipelineGoal& wanted);

/// The best plan for the goal; its gap is that of the goal. Not found: none keeps the budget.
[[nodiscard]] PipelineResult plan_for(const PipelinePlanner& planner, const PipelineGoal& wanted,
                                      const RunContext& context = {});

}  // namespace rubato
