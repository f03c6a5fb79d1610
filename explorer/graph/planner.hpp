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
#include <string_view>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/held_energy.hpp"
#include "explorer/graph/launch_costs.hpp"
#include "explorer/graph/launch_frontier.hpp"
#include "explorer/graph/step_repeats.hpp"
#include "explorer/graph/uniform_sweep.hpp"
#include "explorer/graph/unit_search.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"
#include "explorer/solver.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// What gets one clock: the whole run, each GPU, each pass on a GPU, each kernel of a pass on a
/// GPU, or each launch. A finer plan never takes more energy than a coarser one that is asked for
/// beside it. Automatic knows what a change of clock takes: runs of launches share one.
enum class GraphGrain { iteration, gpu, pass, kernel, launch, automatic };
[[nodiscard]] std::string_view name_of(GraphGrain value) noexcept;
[[nodiscard]] std::optional<GraphGrain> grain_named(std::string_view name) noexcept;

/// Least energy within (1 + slack_frac) x the time at the default clocks.
struct GraphQuestion {
  GraphGrain grain = GraphGrain::kernel;
  double slack_frac = 0.0;  ///< > -1
  /// Launch, automatic: each step of a capture has clocks of its own. Only one of them can be
  /// played for all, see StepRepeats.
  bool own_steps = false;
  /// Automatic: from the effect of a change to the next request, if that is longer than what the
  /// switch model asks for, >= 0.
  double dwell_s = 0.0;
};

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
  /// No plan of this grain takes less energy by the deadline, as long as nothing that runs at the
  /// same time slows anything else down.
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

  /// The frontier swept once more, so that no question has a part in it. A sweep with times of
  /// plans visits a few nodes more, and one that visits too many is begun again less finely.
  [[nodiscard]] Frontier frontier_of_no_question() const;

  /// No plan takes less energy by a time, with the limits of GraphPlanResult::lower_bound_j.
  /// @param frontier  of this planner, by either of the above
  [[nodiscard]] double bound_of_launches_j(const Frontier& frontier, double time_s) const;

  /// One result per question. Stopped, later ones are `time_limit`: what is known, and no bound.
  /// @throws UsageError for a slack that is not a number > -1, or automatic plans where nothing is
  ///         known of changes of clock
  [[nodiscard]] std::vector<GraphPlanResult> plan(std::span<const GraphQuestion> questions,
                                                  const RunContext& context = {});

 private:
  // Clocks of units that end by a time on launches alone, from a target.
  using ClocksFor = std::function<std::optional<std::vector<ClockId>>(const FrontierPlan& target,
                                                                      double limit_s)>;

  // Frontier plans of launches alone, one for each deadline, and beside each other, several each.
  struct Targets {
    std::map<double, std::size_t> of_deadline;  // position of the deadline
    std::vector<FrontierPlan> alone;
    ShorterPlans beside;
  };

  [[nodiscard]] double deadline_s(const GraphQuestion& question) const;
  void prepare(std::vector<double> times_s, const RunContext& context);
  [[nodiscard]] double bound_j(double deadline_s) const;
  [[nodiscard]] double cheapest_time_s() const;
  [[nodiscard]] LaunchUnits units_of(const GraphQuestion& question) const;
  [[nodiscard]] const StepRepeats& repeats_of(const GraphQuestion& question) const {
    return question.own_steps ? own_ : shared_;
  }
  [[nodiscard]] GraphPlan plan_of(const LaunchUnits& units,
                                  const std::vector<ClockId>& clock_of_unit) const;
  [[nodiscard]] Targets targets_for(std::span<const GraphPlanResult> results,
                                    const RunContext& context);
  void answer(GraphPlanResult& result, Targets& all, const RunContext& context);
  void answer_automatic(GraphPlanResult& result, Targets& all, const RunContext& context);
  bool keep_if_better(GraphPlanResult& result, GraphPlan plan);
  void try_uniform(GraphPlanResult& result);
  void search_targets(GraphPlanResult& result, const LaunchUnits& units, Targets& all,
                      const ClocksFor& clocks_for, const RunContext& context);
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
  HeldEnergy held_;
  StepRepeats own_, shared_;
  // What plans of many clocks need: made when the first of them is asked for.
  struct Prices;
  std::unique_ptr<Prices> prices_;
};

}  // namespace rubato
