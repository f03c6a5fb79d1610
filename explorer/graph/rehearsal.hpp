#pragma once
// Plans as they would be played on a GPU: one step's clocks for all steps, changes of clock
// counted. Automatic plans that end late then are made again. docs/graphs.md, section 6.

#include <optional>
#include <span>
#include <vector>

#include "explorer/graph/exploration.hpp"
#include "explorer/graph/playing.hpp"

namespace rubato {

/// Change of time and energy against a baseline, see GraphPlanner::baseline.
[[nodiscard]] PlanChange change_against(const GraphRun& run, const GraphRun& baseline);

/// Plays the plans of one planner.
class Rehearsal {
 public:
  /// @param model, planner  must outlive it; the planner is of the model
  Rehearsal(const GraphModel& model, GraphPlanner& planner)
      : model_(model), planner_(planner), simulator_(model, planner.grid()) {}

  /// The plan with its segments. Where it is known what changes of clock take, also what the plan
  /// comes to when it is played.
  [[nodiscard]] GraphPlanOutcome played(GraphPlanResult result);

  /// The plan as it is set: the clock of each launch is the one in force when it begins, and the
  /// run is the one that is played.
  void set_as_played(GraphPlanOutcome& outcome);

  /// A plan that is in time when it is played. Steps differ, so clocks that just fit one step may
  /// be late in others. Such a plan is made again for less time, as little less as is needed.
  /// @param given  automatic
  /// @param known  plans for other questions, played; what GraphPlanner::looks_at() leaves out is
  ///               not looked at
  /// @return the plan that saves most of those in time both as planned and as played that can be
  ///         applied: of all these, the known ones and one clock for all; without a plan if there
  ///         is none
  [[nodiscard]] GraphPlanOutcome in_time(GraphPlanOutcome given,
                                         std::span<const GraphPlanOutcome* const> known,
                                         const RunContext& context);

 private:
  PlayedRun play(const GraphPlanOutcome& plan, const GraphRun& start);
  [[nodiscard]] bool holds(const GraphPlanOutcome& one) const;
  void keep_if_better(GraphPlanOutcome& best, GraphPlanOutcome other) const;
  void tighten(const GraphQuestion& question, const CountedChanges& late,
               const GraphPlanResult& asked, GraphPlanOutcome& best, const RunContext& context);
  GraphPlanOutcome best_known(const GraphPlanResult& asked, const RunContext& context);
  GraphPlanOutcome answered(const GraphQuestion& question, const GraphPlanResult& asked,
                            const RunContext& context);
  GraphPlanResult as_answer(GraphPlanResult plan, const GraphPlanResult& asked);

  const GraphModel& model_;
  GraphPlanner& planner_;
  GraphSimulator simulator_;
  std::vector<const GraphPlanOutcome*> known_;  // that the question in hand looks at
};

/// Answers of a planner as they are played, how far off they may be, and their odds. One that lacks
/// the odds asked for is made for less time, where such a plan has them.
/// @param model        of the planner
/// @param as_captured  the same run with collectives on their captured SMs; changes are against its
///                     default clocks
/// @param odds_frac    of ending in time as applied, 0 to 1
[[nodiscard]] std::vector<GraphPlanOutcome> rehearsed_answers(
    const GraphModel& model, GraphPlanner& planner, const GraphModel& as_captured,
    std::span<const GraphQuestion> questions, double odds_frac, const RunContext& context);

/// Plans as they are played, and how far off they may be. @param model, as_captured  as above
[[nodiscard]] std::vector<GraphPlanOutcome> rehearsed(const GraphModel& model,
                                                      GraphPlanner& planner,
                                                      const GraphModel& as_captured,
                                                      std::vector<GraphPlanResult> plans);

}  // namespace rubato
