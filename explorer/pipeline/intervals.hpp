#pragma once
// What plans of a modelled pipeline may turn out to save. The errors are those that
// explorer/confidence/confidence.hpp knows of single GPUs, in all passes of all stages at once.

#include <optional>
#include <span>
#include <vector>

#include "explorer/confidence/confidence.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "sim/pipeline_run.hpp"

namespace rubato {

/// What a plan is compared with, and until when. Pointers may be null.
struct PipelineIntervalQuestion {
  const PipelinePlan* against = nullptr;  ///< null: the default clocks
  /// How long the slowest pipeline takes for the iteration, as a multiple of the time at the
  /// default clocks. A pipeline that is done earlier waits for it. Nothing: no pipeline waits.
  std::optional<double> until_vs_default = {};
  const SwitchModel* switching = nullptr;  ///< null: that of the constructor
};

/// Intervals of the change of time and energy against the default clocks, by Monte Carlo draws of
/// the model's errors. Every stage runs the same GPU model, so a draw moves a kernel alike on all
/// stages that have it. The pipeline is replayed with each draw, since a slower pass may delay
/// others. Power while waiting is taken as known. References must outlive this.
class PipelineIntervals {
 public:
  /// @param input  what `clocks` were modelled from
  /// @param clocks  of ModelProfile: forward and backward pass of each virtual stage
  /// @param work   of that profile, times and energies possibly scaled
  /// @throws what GpuModel and make_clock_grid throw
  PipelineIntervals(const StageModelInput& input, const std::vector<KernelClocks>& clocks,
                    const PipelineWork& work, const SwitchModel& switching);

  /// 5th, 50th and 95th percentile of each change. The median is the value to expect. The interval
  /// is widened as far as the estimate without errors. Times against the default clocks stay within
  /// what clocks can change, see TimeBand.
  /// @throws what simulate() throws
  [[nodiscard]] PlanOutlook outlook(const PipelinePlan& plan,
                                    const PipelineIntervalQuestion& question = {}) const;
  [[nodiscard]] SavingInterval of(const PipelinePlan& plan,
                                  const PipelineIntervalQuestion& question = {}) const {
    return outlook(plan, question).interval;
  }

 private:
  // A kernel of a pass: which one of the step, and how often it is launched.
  struct PassKernel {
    KernelId kernel;
    double launches;
  };

  // An option of a pass type that a plan uses: its kernels, their clocks and power limit. `reach`
  // says how much each kernel has of the errors that grow away from the default clocks, `bands`
  // between which factors its time there lies.
  struct UsedOption {
    std::size_t type, option;
    std::vector<PassKernel> kernels;
    std::vector<ClockId> clocks;
    double limit_w;
    std::vector<ErrorReach> reach;
    std::vector<TimeBand> bands;
  };

  // What the plan and the one it is compared with cost in one draw.
  struct Compared {
    Cost cost, base;
  };

  [[nodiscard]] std::vector<UsedOption> used_options(const PipelinePlan& plan,
                                                     const PipelinePlan& against) const;
  [[nodiscard]] PipelineRun run(PipelineSimulator& simulator, const PipelinePlan& plan,
                                const PipelineIntervalQuestion& question) const;
  [[nodiscard]] Compared compared(PipelineSimulator& simulator, const PipelineRun& defaults,
                                  const PipelinePlan& plan,
                                  const PipelineIntervalQuestion& question) const;
  [[nodiscard]] UsedOption used_option(std::size_t type, std::size_t option) const;
  // A kernel of an option: at its clock, and its time at the default clocks.
  struct PassCost {
    Cost cost;
    double usual_s;
  };
  [[nodiscard]] std::vector<PassCost> kernel_costs(const GpuModel& model,
                                                   const UsedOption& used) const;
  /// @param logarithms  of the errors drawn, shape [kernels of the step]
  [[nodiscard]] static Cost with_errors(const std::vector<PassCost>& costs, const UsedOption& used,
                                        std::span<const Cost> logarithms);

  [[nodiscard]] double time_at(double TimeBand::*end, std::span<const UsedOption> used,
                               std::span<const Cost> nominal, const PipelineRun& defaults,
                               const PipelinePlan& plan,
                               const PipelineIntervalQuestion& question) const;

  const std::vector<KernelClocks>& clocks_;
  const PipelineWork& work_;
  SwitchModel switching_;
  Trace step_;      ///< of one microbatch, all stages
  GpuModel model_;  ///< of step_
  ClockGrid grid_;
  std::vector<GpuModel> models_;                     ///< drawn, of step_
  std::vector<std::vector<PassKernel>> kernels_of_;  ///< shape [entries of clocks_]
  std::vector<std::size_t> entry_of_type_;           ///< shape [types of work_]
  RelativeErrors scale_;                             ///< of intervals
  std::vector<Cost> draws_;                          ///< shape [models x draws x kernels of step_]
};

/// Plans for deadlines with their intervals and odds. A plan that lacks the odds is made for so
/// much less time that it has them; where none has, it is the default clocks, if they are in time.
/// @param plans      makes the plans for deadlines
/// @param intervals  of the planner's pipeline; null: nothing is known of odds
/// @param odds_frac  of ending by the deadline, 0 to 1
[[nodiscard]] std::vector<PipelineResult> plan_with_odds(
    const PipelinePlanner& planner, const PlansFor& plans, const PipelineIntervals* intervals,
    std::span<const double> deadlines_s, double odds_frac, const RunContext& context = {});

}  // namespace rubato
