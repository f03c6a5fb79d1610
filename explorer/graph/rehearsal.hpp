#pragma once
// Plans as they would be played: one step's clocks for all steps, changes of clock counted; and
// automatic plans made again where they end late then. docs/graphs.md, section 6.

#include <optional>
#include <span>
#include <vector>

#include "explorer/graph/exploration.hpp"

namespace rubato {

/// Against the default clocks as captured, see GraphPlanner::baseline.
[[nodiscard]] PlanChange change_against(const GraphRun& run, const GraphRun& baseline);

/// Plays the plans of one planner.
class Rehearsal {
 public:
  /// @param model, planner  must outlive it; the planner is of the model
  Rehearsal(const GraphModel& model, GraphPlanner& planner)
      : model_(model), planner_(planner), simulator_(model, planner.grid()) {}

  /// The plan with its segments and, where it is known what changes of clock take, as played.
  [[nodiscard]] GraphPlanOutcome played(GraphPlanResult result);

  /// Steps differ: clocks that just fit one are late in others. Then plans are made for somewhat
  /// less time, as much less as is needed, and, where the bound leaves room, with changes farther
  /// apart, which steps that differ meet better.
  /// @param given  automatic
  /// @param known  plans for other questions, played
  /// @return what saves most of those that are in time, known plans and one clock for all
  ///         included; the given one if there are none
  [[nodiscard]] GraphPlanOutcome in_time(GraphPlanOutcome given,
                                         std::span<const GraphPlanOutcome* const> known,
                                         const RunContext& context);

 private:
  void tighten(const GraphQuestion& question, const CountedChanges& late,
               const GraphPlanResult& asked, GraphPlanOutcome& best, const RunContext& context);
  GraphPlanOutcome best_known(const GraphPlanResult& asked,
                              std::span<const GraphPlanOutcome* const> known,
                              const RunContext& context);
  GraphPlanOutcome answered(const GraphQuestion& question, const GraphPlanResult& asked,
                            const RunContext& context);
  GraphPlanResult as_answer(GraphPlanResult plan, const GraphPlanResult& asked);

  const GraphModel& model_;
  GraphPlanner& planner_;
  GraphSimulator simulator_;
};

/// Answers of a planner as they are played, and how far off they may be.
/// @param as_captured  the model whose default clocks changes are against
[[nodiscard]] std::vector<GraphPlanOutcome> rehearsed_answers(
    const GraphModel& model, GraphPlanner& planner, const GraphModel& as_captured,
    std::span<const GraphQuestion> questions, const RunContext& context);

/// Plans of least cost of a captured run. At a price, time is worth a power (Prices::time_worth_w):
/// least cost is least energy, without a bound on time, of nodes that draw so much more. Totals are
/// then without it; slack and deadline say what came of it, and the gap is that of the cost.
/// @param grains  of the plans, in this order
[[nodiscard]] std::vector<GraphPlanOutcome> plans_of_least_cost(
    const GraphExploration& found, const Prices& prices, std::span<const GraphGrain> grains,
    const std::optional<SwitchModel>& switching, const RunContext& context);

}  // namespace rubato
