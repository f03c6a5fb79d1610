#pragma once
// Clocks for an execution graph within a time: one for all, or one per GPU, pass, kernel, launch or
// run of launches (Granularity). Launches that run at once slow each other down, which solvers know
// only as it was at the default clocks. The simulator says what each plan takes. A plan that it
// finds late is made again for less time. Start here; docs/graphs.md, section 5.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "explorer/graph/questions.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/graph/uniform_sweep.hpp"
#include "explorer/graph/unit_search.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"
#include "explorer/solver.hpp"
#include "sim/graph/simulators.hpp"

namespace rubato {

/// Up to this gap a plan is taken to be the best there is: more is rounding.
inline constexpr double optimal_gap_frac = 1e-9;

/// An answer. Energies are of all GPUs over one replay of the graph, J.
struct GraphPlanResult {
  GraphQuestion question;
  SolveStatus status = SolveStatus::infeasible;
  double deadline_s = 0.0;
  GraphPlan plan;              ///< empty if infeasible
  GraphRun run;                ///< by the simulator
  SwitchModel switching = {};  ///< counted in `run`: of automatic; of other grains nothing
  /// No plan of this grain that ends by the deadline takes less energy in the simulator.
  /// Of automatic it is the higher of two bounds: one has each launch as fast as alone, the other
  /// has changes of clock for free.
  double lower_bound_j = 0.0;
  double gap_frac = 0.0;  ///< (energy - bound) / energy, >= 0

  [[nodiscard]] bool found() const noexcept { return !plan.clock_of_activity.empty(); }
};

/// What plans are made for.
struct PlanUse {
  /// Slack of the deadline that each plan's bound is for, its own or longer; empty: its own.
  std::span<const double> bounded_frac = {};
  /// To see what plans for less time come to: without bounds, and none takes the plan of another
  /// question.
  bool tries = false;
};

/// One graph on one type of GPU: its baseline, every single clock, plans.
class GraphPlanner {
 public:
  /// Replays the graph at every clock.
  /// @param model      must outlive the planner
  /// @param switching  what changes of clock take; nothing: not known, no automatic plans
  /// @param baseline   run whose time slack is added to, kept as a copy; null: the default clocks
  ///                   of the model
  /// @throws UsageError as validate(SwitchModel)
  GraphPlanner(const GraphModel& model, const ClockGrid& grid, const RunContext& context = {},
               const std::optional<SwitchModel>& switching = {},
               const GraphRun* baseline = nullptr);
  ~GraphPlanner();

  /// The run whose time slack is added to: the default clocks, replayed.
  [[nodiscard]] const GraphRun& baseline() const noexcept { return baseline_; }

  /// By clock.
  [[nodiscard]] const std::vector<UniformRun>& uniform() const noexcept { return uniform_; }

  /// The time-energy frontier: for each time the least cost (see LaunchCosts) of launches alone,
  /// each at a clock of its own. The same whatever was asked.
  [[nodiscard]] const Frontier& frontier(const RunContext& context = {});

  [[nodiscard]] const GraphModel& model() const noexcept { return model_; }
  [[nodiscard]] const ClockGrid& grid() const noexcept { return grid_; }
  [[nodiscard]] const std::optional<SwitchModel>& switching() const noexcept { return switching_; }

  /// Whether plans of several clocks were asked for, which need the frontier.
  [[nodiscard]] bool has_frontier() const noexcept { return prices_ != nullptr; }

  /// Lower bound on the energy of every plan that ends by a time, J, each launch as if alone.
  [[nodiscard]] double bound_of_launches_j(double time_s, const RunContext& context = {});

  /// One result per question, on all threads. Its energy is the same whatever else is asked.
  /// Once `context` stops it, the remaining results have status `time_limit`: the best plan known
  /// by then, without a bound.
  /// @throws UsageError for a slack that is not a number > -1, or automatic plans where nothing is
  ///         known of changes of clock
  [[nodiscard]] std::vector<GraphPlanResult> plan(std::span<const GraphQuestion> questions,
                                                  const RunContext& context = {},
                                                  const PlanUse& use = {});

  /// Plans of coarser or shorter questions that were also answered for the ones last asked, since
  /// they could save more (questions_within); without bounds.
  [[nodiscard]] const std::vector<GraphPlanResult>& within() const noexcept { return within_; }

  /// See rubato::looks_at.
  [[nodiscard]] bool looks_at(const GraphQuestion& question, const GraphQuestion& other) const;

  /// Every unit by itself at its best clock for a goal: the time of its launches, as slow as beside
  /// each other at the default clocks, and the energy of these alone, idle and host power included.
  /// @return empty where a unit has no clock that keeps the goal
  [[nodiscard]] GraphPlan local_plan(const GraphQuestion& question, const Goal& goal) const;

  /// A plan for one more question, without a bound. Several threads may ask.
  /// @param question  iteration or automatic
  /// @param known     the search starts from those of these plans that were made for no more time
  [[nodiscard]] GraphPlanResult plan_more(const GraphQuestion& question,
                                          std::span<const GraphPlanResult* const> known,
                                          const RunContext& context = {});

 private:
  // Share of a deadline that still counts as in time: sums of a thousand launches differ in the
  // last digits.
  static constexpr double time_tolerance = 1e-9;

  // Clocks of units that, with launches alone, end by a time; chosen from a plan of the frontier.
  using ClocksFor = std::function<std::optional<std::vector<ClockId>>(const FrontierPlan& target,
                                                                      double limit_s)>;

  [[nodiscard]] double deadline_s(const GraphQuestion& question) const;
  void prepare(const RunContext& context);
  [[nodiscard]] double bound_j(double deadline_s) const;
  [[nodiscard]] double target_s(double deadline_s) const;
  [[nodiscard]] LaunchUnits units_of(const GraphQuestion& question) const;
  [[nodiscard]] std::optional<std::vector<ClockId>> local_clocks(const LaunchUnits& units,
                                                                 const Goal& goal) const;
  [[nodiscard]] GraphPlan plan_of(const LaunchUnits& units,
                                  const std::vector<ClockId>& clock_of_unit) const;
  [[nodiscard]] bool shares_no_clocks(const GraphQuestion& question) const;
  [[nodiscard]] GraphPlanResult begun(const GraphQuestion& question) const;
  void answer(GraphPlanResult& result, const RunContext& context);
  void search_answer(GraphPlanResult& result, const RunContext& context);
  void answer_automatic(GraphPlanResult& result, const RunContext& context);
  [[nodiscard]] double any_clock_frac() const;
  void keep_known_plans(GraphPlanResult& result, std::span<const GraphPlanResult> known);
  [[nodiscard]] double bound_apart_j(const GraphPlanResult& result, double deadline_s,
                                     const RunContext& context) const;
  [[nodiscard]] double lower_bound_j(const GraphPlanResult& result, double deadline_s,
                                     const RunContext& context) const;
  [[nodiscard]] bool could_save(const GraphPlanResult& within, const GraphPlanResult& asked,
                                std::optional<double>& within_bound_j,
                                const RunContext& context) const;
  [[nodiscard]] std::vector<GraphPlanResult> answers_within(std::span<GraphPlanResult> asked,
                                                            const RunContext& context);
  void take_known_plans(std::span<GraphPlanResult> results, std::span<const std::size_t> order,
                        const RunContext& context);
  bool keep_if_better(GraphPlanResult& result, GraphPlan plan);
  bool keep_if_better(GraphPlanResult& result, GraphPlan plan, GraphRun run) const;
  void try_uniform(GraphPlanResult& result);
  void search_target(GraphPlanResult& result, const LaunchUnits& units, const ClocksFor& clocks_for,
                     const RunContext& context);
  void repair(GraphPlanResult& result, const LaunchUnits& units, std::vector<ClockId> clock_of_unit,
              const RunContext& context);

  const GraphModel& model_;
  ClockGrid grid_;
  std::optional<SwitchModel> switching_;
  GraphSimulators simulators_;
  GraphRun defaults_, baseline_;  // the model's default clocks; see baseline()
  std::vector<UniformRun> uniform_;
  // Of launches alone, for bounds; and of launches as slow as beside each other at the default
  // clocks, for plans.
  LaunchCosts alone_, beside_;
  StepRepeats repeats_;
  // What plans of many clocks need: made when the first of them is asked for.
  struct Prices;
  std::unique_ptr<Prices> prices_;
  std::vector<GraphPlanResult> answers_;  // those of answer(), each made once
  std::mutex answers_mutex_;
  std::vector<GraphPlanResult> within_;  // see within()
};

}  // namespace rubato
