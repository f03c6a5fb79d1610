#pragma once
// Clocks for every pass of a step of parallel training. The planner of pipelines finds them on
// passes; the simulator replays them launch by launch on the step's execution graph.
// docs/parallel.md.

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/planner.hpp"
#include "sim/capture/parallel_step.hpp"
#include "sim/graph/disturbance.hpp"
#include "sim/graph/simulator.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

/// A plan and its change against the default clocks, by the simulator of graphs, with one GPU for
/// each stage.
struct ParallelPlan {
  double slack_frac = 0.0;  ///< asked for
  GraphPlan plan;
  double time_frac = 0.0;
  double energy_frac = 0.0;
};

/// One step of parallel training: its graph, its baseline, plans. Each pass of each stage has a
/// clock. What is done once in a step keeps the default clocks. Changes of clock are free.
class ParallelPlanner {
 public:
  /// @param disturbance  what is slower than usual: baseline and plans are of the disturbed step.
  ///                     Ranks are those of parallel_step: of stage s rank s x GPUs of a stage
  /// @throws what parallel_step, capture_graph, slowdown_of and make_clock_grid throw
  ParallelPlanner(const ParallelStepInput& input, const std::string& grid,
                  const GraphDisturbance& disturbance = {});
  ParallelPlanner(const ParallelPlanner&) = delete;
  ParallelPlanner& operator=(const ParallelPlanner&) = delete;
  ~ParallelPlanner() = default;

  [[nodiscard]] const ParallelStep& step() const noexcept { return step_; }
  [[nodiscard]] const GraphModel& model() const noexcept { return *model_; }
  /// The default clocks, replayed.
  [[nodiscard]] const GraphRun& baseline() const noexcept { return baseline_; }

  /// One plan for each slack >= 0, none later than (1 + slack) x the baseline. Where nothing better
  /// was found it is the default clocks.
  [[nodiscard]] std::vector<ParallelPlan> plan(std::span<const double> slacks_frac,
                                               const RunContext& context = {});

 private:
  void make_work(const std::vector<double>& slowdown, std::uint64_t ranks_of_stage);
  [[nodiscard]] GraphPlan graph_plan(const PipelinePlan& plan) const;
  struct Replayed {
    double span_s = 0.0, energy_j = 0.0;
  };
  void keep_if_better(ParallelPlan& best, GraphPlan plan, const Replayed& run) const;
  void keep_if_better(ParallelPlan& best, const PipelinePlan& plan);
  void give_back(PipelinePlan& plan, const PipelinePlan& wanted, double allowed_s,
                 const RunContext& context);
  void keep_in_time(ParallelPlan& best, PipelinePlan plan, const RunContext& context);
  bool speed_up(PipelinePlan& plan, const std::set<std::uint32_t>& passes, double missing_s) const;

  ParallelStep step_;
  CaptureGraph graph_;
  std::unique_ptr<const GraphModel> model_;
  ClockGrid grid_;
  GraphSimulator simulator_;
  GraphRun baseline_;
  std::vector<std::optional<std::uint32_t>> pass_of_activity_;
  PipelineWork work_;
  std::vector<ClockId> clock_of_option_;  // the default clock first
};

}  // namespace rubato
