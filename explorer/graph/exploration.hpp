#pragma once
// One exploration of a captured run, from captures to plans and how far off they may be: what
// `rubato explore` prints of captures. docs/graphs.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/plan_interval.hpp"
#include "explorer/graph/plan_segments.hpp"
#include "explorer/graph/planner.hpp"
#include "explorer/marks.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/plan/applicable.hpp"
#include "sim/graph/comm_sms.hpp"
#include "sim/graph/disturbance.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

/// Everything an exploration of a captured run is made from.
struct GraphExplorationInput {
  std::vector<Capture> captures;  ///< one, or one of each rank
  GpuSpec spec;                   ///< of all GPUs
  ClockPair captured_clock;       ///< asked for during the capture, as in ClockGrid
  std::string grid;               ///< see make_clock_grid; empty: all clocks of the GPU
  std::optional<double> power_limit_w;
  /// What changes of clock take. Automatic plans count it; of other plans it is said what is left
  /// of the saving. Nothing: changes are not counted.
  std::optional<SwitchModel> switching;
  /// What goes otherwise than in the capture, such as a slow rank: default clocks and plans are of
  /// the disturbed run.
  GraphDisturbance disturbance = {};
  /// Numbers of SMs to try for the collectives that run beside compute: a plan puts all of them on
  /// one of these, or leaves them on their captured SMs. Empty: usual_comm_sms. Nothing: they stay.
  std::optional<std::vector<double>> comm_sms = {};
  std::vector<Question> questions;
  double odds_frac =
      0.0;  ///< of being in time that an answer must have, 0 to 1; 0: whatever they are
  /// Time of a step without the profiler, which slows down the host: its own time is shortened to
  /// match. Nothing: as captured.
  std::optional<double> step_time_s = {};
  double host_power_w = 0.0;  ///< of the rest of the node, for each GPU, >= 0: in every total
};

/// A plan as it would be played: one step's clocks for all steps, changes of clock counted.
struct CountedChanges {
  PlanChange change;
  std::uint64_t clock_changes = 0, late_launches = 0;  ///< of all GPUs, see GpuTotals
  double stalled_s = 0.0;                              ///< of all GPUs
  bool in_time = false;                                ///< ends by the plan's deadline
};

/// A plan and how far off it may be.
struct GraphPlanOutcome {
  GraphPlanResult result;
  PlanChange change;                        ///< as planned
  GraphPlanInterval interval;               ///< 90 % interval of `change`
  std::vector<PlanSegment> segments;        ///< as planned
  std::optional<CountedChanges> counted;    ///< nothing: what changes of clock take is not known
  PlanVerdict verdict;                      ///< of what is played; its reason is a mark too
  std::optional<double> odds_in_time = {};  ///< as applied, 0 to 1; nothing: not known
  std::optional<BolderPlan> bolder = {};    ///< as of PlanResult
  std::optional<double> comm_sms = {};      ///< of collectives beside compute; nothing: as captured
  /// Other than LeastWaste. Then the slack is the time that came of it, the gap is that of the
  /// goal, and energy has no bound.
  std::optional<Goal> goal = {};
  std::vector<Mark> marks;  ///< what to know beside these numbers

  /// What was asked for.
  [[nodiscard]] Goal asked_goal() const {
    return goal.value_or(LeastWaste{.slack_frac = result.question.slack_frac});
  }
  /// Of a plan of least cost.
  [[nodiscard]] std::optional<Prices> prices() const {
    const auto* cost = goal ? std::get_if<LeastCost>(&*goal) : nullptr;
    return cost == nullptr ? std::nullopt : std::optional(cost->prices);
  }
  /// The change with changes of clock counted, where it is known what they take.
  [[nodiscard]] const PlanChange& change_as_played() const {
    return counted ? counted->change : change;
  }
};

/// Captured time of launches by what is known of their kernels, s.
struct GraphCoverage {
  double measured_s = 0.0;       ///< fitted to this kernel at several clocks
  double anchored_s = 0.0;       ///< captured time whose split (core, DRAM, fixed) is modelled
  double guessed_split_s = 0.0;  ///< part of anchored_s: split as is usual for the kernel's class
  double fixed_s = 0.0;          ///< copies over PCIe and collectives: no clock changes them

  [[nodiscard]] double total_s() const { return measured_s + anchored_s + fixed_s; }
};

/// The same run with the collectives that run beside compute on other SMs.
struct CommSmsChoice {
  std::optional<double> comm_sms;
  std::unique_ptr<const GraphModel> model;
  std::unique_ptr<GraphPlanner> planner;  ///< against the default clocks as captured
};

/// What was found. Refers to nothing outside itself.
struct GraphExploration {
  std::unique_ptr<const CaptureGraph> run;
  std::unique_ptr<const GraphModel> model;
  std::unique_ptr<GraphPlanner> planner;
  double captured_span_s = 0.0;
  double host_time_factor = 1.0;   ///< on the host's own time, of step_time_s
  double reproduced_span_s = 0.0;  ///< captured durations at the captured clocks, simulated
  double reproduced_energy_j = 0.0;
  /// The default clocks without the disturbance; nothing: there was none.
  std::optional<double> undisturbed_span_s;
  GraphCoverage coverage;
  std::vector<Mark> baseline_marks;     ///< of the default clocks, what every change is against
  std::vector<GraphPlanOutcome> plans;  ///< in the order of the questions
  std::vector<OverlappingCollective> overlapping;  ///< whose SMs were chosen
  std::vector<CommSmsChoice> comm_sms;             ///< in the order they were tried
  double odds_frac = 0.0;                          ///< that were asked for
  double wall_time_s = 0.0;
  bool interrupted = false;  ///< Ctrl-C or a time limit: plans found by then

  /// The model and planner that a plan was made with: on its SMs.
  [[nodiscard]] const GraphModel& model_of(const GraphPlanOutcome& outcome) const;
  [[nodiscard]] const GraphPlanner& planner_of(const GraphPlanOutcome& outcome) const;
};

/// @throws UsageError for SMs to choose where no collective runs beside compute, or for a number of
///         SMs that the GPU does not have; what capture_graph, GraphModel, make_clock_grid and
///         GraphPlanner throw
[[nodiscard]] GraphExploration explore_captured(const GraphExplorationInput& input,
                                                const RunContext& context = {});

/// Time of a step at the default clocks, which every change of explore_captured() is against, s.
/// @throws what explore_captured() throws of captures and grids
[[nodiscard]] double default_step_s(const GraphExplorationInput& input);

/// Clock changes of all GPUs for each second of the plan.
[[nodiscard]] double changes_per_s(const GraphPlanResult& result);

}  // namespace rubato
