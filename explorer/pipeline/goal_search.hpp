#pragma once
// Plans of a pipeline for goals other than least energy by a deadline: energy-delay products,
// energy alone, money, and least time within a budget. docs/pipeline.md.

#include <functional>

#include "explorer/pipeline/planner.hpp"

namespace rubato {

/// The planner knows least energy by a deadline; a goal that grows with time and energy is least
/// for one of these. Plans are made around the time at which the frontier has the goal least and
/// from the fastest to the cheapest, then half-way to the neighbours of the best: more often for a
/// budget, which has an edge.
/// - The deadline is the time that came of it.
/// - The gap is that of the goal. Energy has no bound (0).
/// @param goal     of all stages together, one GPU each; any but LeastWaste
/// @param verdict  whether GPUs can be set to a plan; plans that they can come first
/// @return without a plan if no plan keeps the budget
[[nodiscard]] PipelineResult plan_of_goal(
    const PipelinePlanner& planner, const Goal& goal,
    const std::function<PlanVerdict(const PipelineResult&)>& verdict,
    const RunContext& context = {});

}  // namespace rubato
