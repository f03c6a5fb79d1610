#pragma once
// Plans of one pipeline of every granularity: one clock for all stages, one for each stage, for
// each pass, or for each kernel of each pass.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/goal_search.hpp"
#include "explorer/pipeline/intervals.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/shared/shared_clocks.hpp"
#include "explorer/pipeline/stage_clocks.hpp"

namespace rubato {

/// The planners that a pipeline needs, each made once.
class StagePlanner {
 public:
  /// @param all            of all options; must outlive it
  /// @param options        what `all` was made with
  /// @param granularities  run, gpu, stage, pass, kernel: those that will be asked for
  StagePlanner(const PipelinePlanner& all, const PlannerOptions& options,
               std::span<const Granularity> granularities, const RunContext& context = {});

  /// One plan per deadline from a granularity's own search, PipelinePlanner::plan() or
  /// SharedClocks::plan().
  [[nodiscard]] std::vector<PipelineResult> plan(Granularity granularity,
                                                 std::span<const double> deadlines_s,
                                                 const RunContext& context = {}) const;

  /// The same with the odds asked for, see plan_with_odds(). Of each granularity the coarser plans
  /// are candidates too, so none takes more energy than these.
  /// @param intervals  null: no odds
  /// @return shape [granularities asked for][deadlines]
  [[nodiscard]] std::vector<std::vector<PipelineResult>> plans_with_odds(
      const PipelineIntervals* intervals, std::span<const double> deadlines_s, double odds_frac,
      const RunContext& context = {}) const;

  /// The plans of another goal, see plan_of_goal(), with coarser ones as candidates. That of one
  /// clock for all is exact. @return shape [granularities asked for]
  [[nodiscard]] std::vector<PipelineResult> plans_of_goal(const Goal& goal, const PlanJudge& judge,
                                                          const RunContext& context = {}) const;

 private:
  [[nodiscard]] const PipelinePlanner& planner(Granularity granularity) const;
  [[nodiscard]] PipelineResult cheaper_of(PipelineResult result,
                                          const PipelineResult& coarser) const;

  const PipelinePlanner& all_;
  std::vector<Granularity> asked_;
  std::vector<Granularity> searched_;  // those asked for and what they include, coarsest first
  std::optional<LimitedWork> uniform_work_;  // nothing: no option has several clocks
  std::optional<PipelinePlanner> uniform_;
  std::optional<SharedClocks> shared_;
};

}  // namespace rubato
