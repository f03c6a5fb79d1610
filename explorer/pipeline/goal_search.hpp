#pragma once
// Plans of a pipeline for goals other than least energy by a deadline: energy-delay products,
// energy alone, money, and least time within a budget. docs/pipeline.md.

#include <functional>
#include <span>
#include <vector>

#include "explorer/pipeline/planner.hpp"

namespace rubato {

/// Whether GPUs can be set to a plan.
using PlanJudge = std::function<PlanVerdict(const PipelineResult&)>;

/// The planner knows least energy by a deadline; a goal that grows with time and energy is least
/// for one of these. Plans are made around the time at which the frontier has the goal least and
/// from the fastest to the cheapest, then half-way to the neighbours of the best: more often for a
/// budget, which has an edge.
/// - The deadline is the time that came of it.
/// - The gap is that of the goal. Energy has no bound (0).
/// @param goal     of all stages together, one GPU each; any but LeastWaste
/// @param judge    whether GPUs can be set to a plan; plans that they can come first
/// @param plans    makes the plans for deadlines
/// @param times_s  more of them to ask for
/// @param known    plans made elsewhere: one that can be set takes the place of one that can be set
///                 and is worse
/// @return without a plan if no plan keeps the budget
[[nodiscard]] PipelineResult plan_of_goal(const PipelinePlanner& planner, const Goal& goal,
                                          const PlanJudge& judge, const PlansFor& plans,
                                          std::vector<double> times_s = {},
                                          std::span<const PipelineResult> known = {},
                                          const RunContext& context = {});

}  // namespace rubato
