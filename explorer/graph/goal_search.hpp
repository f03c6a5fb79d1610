#pragma once
// Plans of a captured run for goals other than least energy within a slack: energy-delay products,
// energy alone, money, and least time within a budget. docs/graphs.md, section 5.

#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/exploration.hpp"

namespace rubato {

/// The planner knows least energy by a deadline. A goal that grows with time and with energy is
/// least for one of these: plans are made for slacks from the fastest clock to the slowest one, and
/// for more of them next to the best.
/// - Deadline and slack of a result are the time that came of it.
/// - Its gap is that of the goal, to a bound over all plans of the granularity. Its energy has no
///   bound (0).
/// - A result for a budget that no plan keeps has no plan.
/// - Of local aggregation every unit is best by itself.
/// @param found      with model and planner
/// @param questions  no goal of them is LeastWaste
[[nodiscard]] std::vector<GraphPlanOutcome> plans_of_goals(const GraphExploration& found,
                                                           std::span<const Question> questions,
                                                           const RunContext& context);

}  // namespace rubato
