#pragma once
// Plans of a pipeline in which passes share clocks: one for all stages, or one for each stage. A
// stage then never changes its clock.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/goal.hpp"
#include "explorer/pipeline/planner.hpp"

namespace rubato {

/// The clocks that all passes of a stage have, and what they come to.
class SharedClocks {
 public:
  /// @param planner  must outlive it; none of its options has several clocks in it
  explicit SharedClocks(const PipelinePlanner& planner);

  /// Iteration times with one clock for all stages, s.
  [[nodiscard]] std::vector<double> times_of_one_clock() const;

  /// The plan of least energy by each deadline. One clock for all: every clock is tried. One for
  /// each stage: branch and bound, stage by stage, with the bound that prices of time give
  /// (FrontierPlan::flow_w). It is exact unless it ends at a limit of work, as with 8 stages;
  /// then the plan has a gap to the bound.
  /// @param granularity  run, gpu or stage; the GPUs of a stage are one
  [[nodiscard]] std::vector<PipelineResult> plan(Granularity granularity,
                                                 std::span<const double> deadlines_s,
                                                 const RunContext& context = {}) const;

 private:
  class StageSearch;

  // A clock of a stage: the option of each of its types, and all of its passes together.
  struct StageClock {
    ClockOption clock;
    std::vector<OptionId> option_of_type;  // shape [types of the stage]
    bool has_choice = false;               // some pass of the stage has several clocks
    double cost_j = 0.0;                   // energy minus blocked power x time
  };
  using Chosen = std::vector<std::size_t>;  // clock of each stage

  [[nodiscard]] std::vector<std::vector<double>> values_of(std::size_t stage) const;
  [[nodiscard]] PipelinePlan plan_of(const Chosen& chosen, std::size_t stages) const;
  [[nodiscard]] double cost_j(const Chosen& chosen) const;

  const PipelinePlanner& planner_;
  const PipelineWork& work_;
  ClockRounder rounder_;
  std::vector<std::vector<std::size_t>> types_;   // of each stage
  std::vector<OptionId> fastest_;                 // shape [types]
  std::vector<std::vector<StageClock>> clocks_;   // of each stage
  std::vector<std::vector<std::size_t>> useful_;  // clocks of each stage that no other one beats
  std::vector<Chosen> one_clock_;                 // each clock that all stages have
};

}  // namespace rubato
