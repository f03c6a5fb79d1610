#pragma once
// One exploration: a trace on a GPU, the clocks to choose from, the plans found for several goals,
// and what the simulator says about each.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/confidence/confidence.hpp"
#include "explorer/goal.hpp"
#include "explorer/marks.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/plan/applicable.hpp"
#include "explorer/solver.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// The answer: the solver's claim and the simulator's totals.
struct PlanResult {
  Question question;
  SolveStatus status = SolveStatus::infeasible;
  double objective = 0.0;  ///< in the unit of the goal, see Solution
  double lower_bound = 0.0;
  double gap_frac = 0.0;
  std::uint64_t nodes = 0;
  double solve_time_s = 0.0;
  Plan plan;                               ///< empty if infeasible, or of a pipeline
  SimResult sim;                           ///< replayed by the simulator; zero if infeasible
  std::optional<SavingInterval> interval;  ///< 90 %, of its change against the default clocks
  /// Of a plan that took changes of clock to be free: its totals with them, as the spec knows them.
  std::optional<Totals> counted;
  PlanVerdict verdict;  ///< whether a GPU can be set to it; its reason is a mark too
  std::optional<double> odds_in_time = {};  ///< as applied, 0 to 1; nothing: not known
  /// Where the plan was made for less time than the slack, to have the odds asked for: the one for
  /// all of it.
  std::optional<BolderPlan> bolder = {};
  std::vector<Mark> marks;  ///< what to know beside these numbers

  [[nodiscard]] bool found() const noexcept { return sim.total.launches > 0; }
};

/// One point of a time-energy front.
struct FrontPoint {
  double time_s = 0.0;
  double energy_j = 0.0;
};

/// Pareto front of one granularity (global aggregation), fastest first.
struct Front {
  Granularity granularity = Granularity::kernel;
  std::vector<FrontPoint> points;
};

/// Everything an exploration is made from.
struct ExplorationInput {
  Trace trace;
  GpuSpec spec;
  std::string grid;                     ///< see make_clock_grid; unused where cells were measured
  std::optional<double> power_limit_w;  ///< replaces the spec's
  SwitchModel switching;
  std::vector<Question> questions;
  /// Measured cells to plan on instead of the model's, and the clocks to choose from then.
  std::shared_ptr<const MeasuredCells> measured = {};
  std::vector<ClockPair> measured_clocks = {};
  RelativeErrors measured_noise = {};  ///< of one of these cells, standard deviation
  /// Power of the rest of the node for each GPU, >= 0. It is in every total, and plans are chosen
  /// with it. It is not in `Exploration::cells`, which are the GPU's alone.
  double host_power_w = 0.0;
  /// Draws for intervals, shared by many requests; nothing: they are made for this one.
  std::shared_ptr<StandardErrorDraws> error_draws = {};
  double odds_frac =
      0.0;  ///< of being in time that an answer must have, 0 to 1; 0: whatever they are
  bool plans_only = false;  ///< no intervals, marks or fronts, which take longer than plans
};

/// What a change of clock takes in the plan of a question, see Question::counts_changes.
[[nodiscard]] SwitchModel switching_of(const ExplorationInput& input, const Question& question);

/// The model that answers a request. @throws what GpuModel throws
[[nodiscard]] GpuModel model_of(const ExplorationInput& input);

/// Everything an exploration found. `cells` has shape [kernels x clocks].
struct Exploration {
  ClockGrid grid;
  std::vector<OperatingPoint> cells;
  std::vector<CoefficientSource> coefficient_sources;  ///< shape [kernels]
  std::vector<bool> work_dropped;                      ///< see GpuModel::work_dropped, [kernels]
  SimResult baseline;                                  ///< default clocks everywhere
  std::vector<Mark> baseline_marks;                    ///< what every change is against
  std::vector<PlanResult> plans;                       ///< in the order of the questions
  std::vector<Front> fronts;                           ///< one per granularity asked for
  double odds_frac = 0.0;                              ///< that were asked for
  double wall_time_s = 0.0;
  bool interrupted = false;  ///< Ctrl-C: later questions are missing
};

/// Fills the table, answers each question, replays each plan. Where there are intervals, a plan for
/// a slack is made for so much less time that it has the odds asked for; bound and gap are then of
/// that time. Where no plan has them, it is the default clocks, if they are in time.
/// @throws what GpuModel, make_clock_grid and the solvers throw
[[nodiscard]] Exploration explore(const ExplorationInput& input, const RunContext& context = {});

}  // namespace rubato
