#pragma once
// Plans of one pipeline for deadlines. In four steps: sweep the time-energy frontier of free
// durations, round these to clocks that exist, replay the plan, compare it with the lower bound.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/confidence/confidence.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"
#include "explorer/pipeline/run_search.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/plan/applicable.hpp"
#include "explorer/solver.hpp"
#include "sim/pipeline_run.hpp"

namespace rubato {

/// What happens once a plan has ended before its deadline.
enum class AfterEnd {
  go_on,  ///< the next iteration starts: a shorter time may save energy
  wait    ///< others set the pace: blocked power is drawn until the deadline
};

/// A plan, as a result store and a report need it. Energies are of one pipeline with one GPU
/// per stage. Those of all GPUs are that times tensor-parallel degree times replicas.
struct PipelineResult {
  SolveStatus status = SolveStatus::infeasible;
  AfterEnd after_end = AfterEnd::go_on;
  double deadline_s = 0.0;
  double least_time_s = 0.0;  ///< no plan is faster; deadlines below it are infeasible
  Granularity granularity = Granularity::pass;  ///< what shares a clock
  PipelinePlan plan;                            ///< empty if there is none
  PipelineRun run;             ///< replayed; its energy includes waiting until run.time_s only
  double energy_j = 0.0;       ///< run.energy_j, plus blocked power up to the deadline if waiting
  double lower_bound_j = 0.0;  ///< of energy_j over all plans that keep the deadline
  double gap_frac = 0.0;       ///< (energy_j - lower_bound_j) / energy_j
  /// Interval of the change against the baseline. Nothing yet after plan(): for modelled stages it
  /// comes from PipelineIntervals.
  std::optional<SavingInterval> interval = {};
  std::optional<Goal> goal = {};            ///< other than LeastWaste: its deadline came of it
  PlanVerdict verdict = {};                 ///< whether GPUs can be set to it
  std::optional<double> odds_in_time = {};  ///< as applied, 0 to 1; nothing: not known
  double odds_frac = 0.0;                   ///< that were asked for
  std::optional<BolderPlan> bolder = {};    ///< as of PlanResult
  bool fitted = true;                       ///< at clocks that the GPU was fitted at, only

  [[nodiscard]] bool found() const noexcept { return !plan.option_of_pass.empty(); }
};

/// How hard to look, and what changes of clock take.
struct PlannerOptions {
  bool exact_sweep = false;  ///< of large pipelines too, see automatic_sweep
  /// Deadlines that plan() will be asked for: their durations come from the frontier's own sweep.
  std::vector<double> deadlines_s = {};
  SwitchModel switching = {};  ///< if changes are not free, plans weigh them: run_search.hpp
};

/// Plans for deadlines, one for each.
using PlansFor = std::function<std::vector<PipelineResult>(std::span<const double> deadlines_s)>;

/// One pipeline: its baseline, its frontier, plans for any deadline.
class PipelinePlanner {
 public:
  /// Sweeps the frontier once.
  /// @param work  must outlive the planner
  explicit PipelinePlanner(const PipelineWork& work, const PlannerOptions& options = {},
                           const RunContext& context = {});

  [[nodiscard]] const PipelineWork& work() const noexcept { return work_; }
  [[nodiscard]] const Frontier& frontier() const noexcept { return frontier_; }
  [[nodiscard]] double least_time_s() const noexcept { return least_time_s_; }

  /// Every pass at its highest clock, replayed.
  [[nodiscard]] const PipelineRun& baseline() const noexcept { return baseline_; }

  /// Power of all stages while they wait.
  [[nodiscard]] double waiting_power_w() const noexcept {
    return work_.blocked_power_w * work_.schedule.shape.stages;
  }

  /// The time on the frontier at which an iteration takes least energy, waiting included.
  [[nodiscard]] double cheapest_time_s() const noexcept { return cheapest_time_s_; }

  /// One plan per deadline, in which no stage changes its power limit, from one more sweep of the
  /// frontier if the first one lacks their durations. No plan takes more energy than that of an
  /// earlier deadline. If interrupted, plans are the best so far; before the sweep has ended they
  /// are missing (`infeasible`).
  /// @param deadlines_s  each > 0
  /// @throws UsageError for a deadline that is not a positive number
  [[nodiscard]] std::vector<PipelineResult> plan(std::span<const double> deadlines_s,
                                                 AfterEnd after_end = AfterEnd::go_on,
                                                 const RunContext& context = {}) const;

  /// Free durations and prices at times, from the frontier's own sweep if it has them; nothing if
  /// interrupted.
  [[nodiscard]] std::optional<std::vector<FrontierPlan>> durations(std::vector<double> times_s,
                                                                   const RunContext& context) const;

  /// A plan made elsewhere for a deadline, replayed, or that there is none.
  [[nodiscard]] PipelineResult result_of(double deadline_s, std::optional<PipelinePlan> plan,
                                         double lower_bound_j) const;

  /// The result with another plan instead, if that ends in time and takes less energy.
  [[nodiscard]] PipelineResult cheaper_of(PipelineResult result, const PipelinePlan& plan) const;

 private:
  // What to round: durations for target_s, to clocks whose plan ends by limit_s.
  struct Question {
    double limit_s = 0.0;
    double target_s = 0.0;
    AfterEnd after_end = AfterEnd::go_on;
  };

  [[nodiscard]] Question question(double limit_s, AfterEnd after_end) const;
  [[nodiscard]] double bound_j(double deadline_s, AfterEnd after_end,
                               std::span<const PriceLine> lines = {}, double reach = 1.0) const;
  [[nodiscard]] std::vector<std::optional<PipelinePlan>> answer(std::span<const Question> questions,
                                                                const RunContext& context) const;
  [[nodiscard]] double total_j(const Question& question, const PipelinePlan& plan) const;
  [[nodiscard]] std::optional<PipelinePlan> pick_best(const Question& question,
                                                      std::span<const FrontierPlan> candidates,
                                                      const RunContext& context) const;
  struct SwitchingAnswer {
    std::optional<PipelinePlan> plan;  // that can be set
    bool refused = false;              // as of FoundRuns
  };
  [[nodiscard]] std::vector<SwitchingAnswer> answer_switching(std::span<const Question> questions,
                                                              std::span<PipelineResult> results,
                                                              const SwitchModel& switching,
                                                              const RunContext& context) const;
  [[nodiscard]] bool can_be_set(const PipelinePlan& plan, const PipelineRun& run) const;
  void hold_longer(std::span<const Question> questions, std::vector<SwitchingAnswer> answers,
                   std::span<PipelineResult> results, const RunContext& context) const;
  void replay(PipelineResult& result, PipelinePlan plan) const;
  void make_monotone(std::vector<PipelineResult>& results) const;
  void keep_one_limit(std::vector<PipelineResult>& results, const RunContext& context) const;

  const PipelineWork& work_;
  PlannerOptions options_;
  CrashProblem problem_;
  ClockRounder rounder_;
  PipelineRun baseline_;
  std::vector<double> swept_times_s_;  ///< of frontier_.plans
  Frontier frontier_;
  double least_time_s_ = 0.0;
  double cheapest_time_s_ = 0.0;
  Granularity granularity_ = Granularity::pass;  ///< of plan()
};

/// 100 x (1 - value / reference).
[[nodiscard]] double saving_pct(double value, double reference);

}  // namespace rubato
