#pragma once
// Clocks for an execution graph: one for all, one per pass, per kernel, or per launch, within a
// time. Solvers work on launches alone; the simulator, with everything that runs at once, says what
// each plan takes, and a plan that it finds late is made again for less time. Start here;
// docs/graphs.md.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/held_energy.hpp"
#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/launch_prices.hpp"
#include "explorer/graph/questions.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/graph/uniform_sweep.hpp"
#include "explorer/graph/unit_search.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"
#include "explorer/solver.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// Up to this gap a plan is taken to be the best there is: more is rounding.
inline constexpr double optimal_gap_frac = 1e-9;

/// An answer. Energies are of all GPUs over one replay of the graph.
struct GraphPlanResult {
  GraphQuestion question;
  SolveStatus status = SolveStatus::infeasible;
  double deadline_s = 0.0;
  GraphPlan plan;              ///< empty if infeasible
  GraphRun run;                ///< by the simulator
  SwitchModel switching = {};  ///< counted in `run`: nothing but for automatic
  /// No plan of this grain takes less energy by the deadline, by the simulator's rules, unless
  /// launches of three streams of a GPU or more reach the power limit together. Of automatic: by
  /// launches as fast as alone, or as if changes of clock were free.
  double lower_bound_j = 0.0;
  double gap_frac = 0.0;  ///< (energy - bound) / energy, >= 0

  [[nodiscard]] bool found() const noexcept { return !plan.clock_of_activity.empty(); }
};

/// One graph on one type of GPU: its baseline, every single clock, plans.
class GraphPlanner {
 public:
  /// Replays the graph at every clock.
  /// @param model      must outlive the planner
  /// @param switching  what changes of clock take; nothing: not known, no automatic plans
  /// @param baseline   what slack is beyond, kept as a copy; null: the default clocks of the model
  /// @throws UsageError as validate(SwitchModel)
  GraphPlanner(const GraphModel& model, const ClockGrid& grid, const RunContext& context = {},
               const std::optional<SwitchModel>& switching = {},
               const GraphRun* baseline = nullptr);
  ~GraphPlanner();

  /// What slack is beyond: the default clocks, replayed.
  [[nodiscard]] const GraphRun& baseline() const noexcept { return baseline_; }

  /// By clock.
  [[nodiscard]] const std::vector<UniformRun>& uniform() const noexcept { return uniform_; }

  /// Least cost of launches alone, each at a clock of its own, see LaunchCosts: for every time, or
  /// after questions for those that answers needed.
  [[nodiscard]] const Frontier& frontier(const RunContext& context = {});

  [[nodiscard]] const ClockGrid& grid() const noexcept { return grid_; }
  [[nodiscard]] const std::optional<SwitchModel>& switching() const noexcept { return switching_; }

  /// Whether plans of several clocks were asked for, which need the frontier.
  [[nodiscard]] bool has_frontier() const noexcept { return prices_ != nullptr; }

  /// Whether launches that run at once were seen to reach the power limit while plans were bounded:
  /// they take less than alone at any clock then, so that launches alone bound nothing.
  [[nodiscard]] bool limited_together() const noexcept;

  /// The frontier swept once more, so that no question has a part in it. A sweep with times of
  /// plans visits a few nodes more, and one that visits too many is begun again less finely.
  [[nodiscard]] Frontier frontier_of_no_question() const;

  /// No plan takes less energy by a time, unless limited_together(), and with the limits of
  /// GraphPlanResult::lower_bound_j.
  /// @param frontier  of this planner, by either of the above
  [[nodiscard]] double bound_of_launches_j(const Frontier& frontier, double time_s) const {
    return rubato::bound_of_launches_j(frontier, alone_.least_idle_w(), time_s);
  }

  /// One result per question, of the same energy whatever is asked beside it, unless that is at a
  /// slack that is none of the usual ones; automatic ones start their search from such plans, and
  /// may differ a little. Stopped, later ones are `time_limit`: what is known, and no bound.
  /// @throws UsageError for a slack that is not a number > -1, or automatic plans where nothing is
  ///         known of changes of clock
  [[nodiscard]] std::vector<GraphPlanResult> plan(std::span<const GraphQuestion> questions,
                                                  const RunContext& context = {});

  /// Plans of those questions within the ones last asked that could save more: no bounds.
  [[nodiscard]] const std::vector<GraphPlanResult>& within() const noexcept { return within_; }

  /// A plan for one more question, of one clock for all or automatic, begun from plans and prices
  /// of an automatic one of those last asked: no bound.
  [[nodiscard]] GraphPlanResult plan_more(const GraphQuestion& question,
                                          const GraphPlanResult& asked,
                                          const RunContext& context = {});

 private:
  // Sums of a thousand launches differ in the last digits.
  static constexpr double time_tolerance = 1e-9;

  // Clocks of units that end by a time on launches alone, from a target.
  using ClocksFor = std::function<std::optional<std::vector<ClockId>>(const FrontierPlan& target,
                                                                      double limit_s)>;

  // Frontier plans of launches alone, one for each deadline asked for, and beside each other,
  // several each.
  struct Targets {
    std::map<double, FrontierPlan> alone;  // by deadline
    ShorterPlans beside;
  };

  [[nodiscard]] double deadline_s(const GraphQuestion& question) const;
  void prepare(std::vector<double> times_s, const RunContext& context);
  [[nodiscard]] double bound_j(double deadline_s) const;
  [[nodiscard]] double target_s(double deadline_s) const;
  [[nodiscard]] LaunchUnits units_of(const GraphQuestion& question) const;
  [[nodiscard]] const StepRepeats& repeats_of(const GraphQuestion& question) const {
    return question.own_steps ? own_ : shared_;
  }
  [[nodiscard]] GraphPlan plan_of(const LaunchUnits& units,
                                  const std::vector<ClockId>& clock_of_unit) const;
  [[nodiscard]] Targets targets_for(std::span<const GraphPlanResult> results,
                                    const RunContext& context);
  [[nodiscard]] bool shares_no_clocks(const GraphQuestion& question) const;
  [[nodiscard]] GraphPlanResult begun(const GraphQuestion& question) const;
  void answer(GraphPlanResult& result, const RunContext& context);
  void answer_automatic(GraphPlanResult& result, double prices_at_s, const RunContext& context);
  void keep_known_plans(GraphPlanResult& result, std::span<const GraphPlanResult> known);
  [[nodiscard]] double bound_apart_j(const GraphPlanResult& result, double prices_at_s,
                                     const HeldEnergy& held, const RunContext& context) const;
  [[nodiscard]] double lower_bound_j(const GraphPlanResult& result, const RunContext& context);
  [[nodiscard]] bool could_save(const GraphPlanResult& within, const GraphPlanResult& asked,
                                const RunContext& context) const;
  [[nodiscard]] std::vector<GraphPlanResult> answers_within(std::span<GraphPlanResult> asked,
                                                            const RunContext& context);
  bool keep_if_better(GraphPlanResult& result, GraphPlan plan);
  bool keep_if_better(GraphPlanResult& result, GraphPlan plan, GraphRun run) const;
  void try_uniform(GraphPlanResult& result);
  void search_targets(GraphPlanResult& result, const LaunchUnits& units,
                      const ClocksFor& clocks_for, const RunContext& context);
  void share_gpus(GraphPlanResult& result, const LaunchUnits& units, const RunContext& context);
  void even_out(GraphPlanResult& result, const LaunchUnits& units, const RunContext& context);
  void repair(GraphPlanResult& result, const LaunchUnits& units, std::vector<ClockId> clock_of_unit,
              const RunContext& context);

  const GraphModel& model_;
  ClockGrid grid_;
  std::optional<SwitchModel> switching_;
  GraphSimulator simulator_;
  GraphRun defaults_, baseline_;  // the model's default clocks; what slack is beyond
  std::vector<UniformRun> uniform_;
  // Launches alone, for bounds, and as slow as at the default clocks beside each other, for plans.
  LaunchCosts alone_, beside_;
  HeldEnergy held_;  // as if nothing was slower for what runs beside it
  StepRepeats own_, shared_;
  // What plans of many clocks need: made when the first of them is asked for.
  struct Prices;
  std::unique_ptr<Prices> prices_;
  std::optional<Targets> targets_;       // of the questions last asked
  std::vector<GraphPlanResult> within_;  // those
};

}  // namespace rubato
