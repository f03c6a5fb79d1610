#pragma once
// One exploration: a trace on a GPU, the clocks to choose from, the plans found
// for several goals, and what the simulator says about each.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/confidence/confidence.hpp"
#include "explorer/goal.hpp"
#include "explorer/marks.hpp"
#include "explorer/solver.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// One question: what to optimise, for which units, with which budget.
struct Question {
  Granularity granularity = Granularity::kernel;
  Aggregation aggregation = Aggregation::global;
  Goal goal = LeastWaste{};
  /// Where the request takes changes of clock to be free: this plan counts them as the spec knows
  /// them, and is chosen so if its granularity is `segment`.
  bool counts_changes = false;
};

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
  std::optional<SavingInterval> interval;  ///< of its change against the default clocks
  /// With changes of clock as the spec knows them, of a plan that took them to be free.
  std::optional<Totals> counted;
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
  /// Cells to plan on instead of the model's, and the clocks to choose from; nothing: the model's.
  std::shared_ptr<const MeasuredCells> measured = {};
  std::vector<ClockPair> measured_clocks = {};
  RelativeErrors measured_noise = {};  ///< of one of these cells
  /// Of the rest of the node, for each GPU, W >= 0: in every total and what plans are chosen by,
  /// but not in `Exploration::cells`, which are the GPU's.
  double host_power_w = 0.0;
  /// Draws for intervals that many requests share; nothing: made for this one.
  std::shared_ptr<StandardErrorDraws> error_draws = {};
  bool plans_only = false;  ///< no intervals, marks or fronts: they take longer than plans
};

/// What a change of clock takes in the plan of a question.
[[nodiscard]] SwitchModel switching_of(const ExplorationInput& input, const Question& question);

/// The model that answers it. @throws what GpuModel throws
[[nodiscard]] GpuModel model_of(const ExplorationInput& input);

/// Everything an exploration found. `cells` has shape [kernels x clocks].
struct Exploration {
  ClockGrid grid;
  std::vector<OperatingPoint> cells;
  std::vector<CoefficientSource> coefficient_sources;  ///< shape [kernels]
  std::vector<bool> work_dropped;                      ///< beyond the GPU's peaks, shape [kernels]
  SimResult baseline;                                  ///< default clocks everywhere
  std::vector<Mark> baseline_marks;                    ///< what every change is against
  std::vector<PlanResult> plans;                       ///< in the order of the questions
  std::vector<Front> fronts;                           ///< one per granularity asked for
  double wall_time_s = 0.0;
  bool interrupted = false;  ///< Ctrl-C: later questions are missing
};

/// Fills the table, answers each question, replays each plan.
/// @throws what GpuModel, make_clock_grid and the solvers throw
[[nodiscard]] Exploration explore(const ExplorationInput& input, const RunContext& context = {});

}  // namespace rubato
