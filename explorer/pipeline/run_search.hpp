#pragma once
// Plans with few changes of clock, where changes cost. Starts come from a Lagrangian relaxation at
// the prices of time that a frontier knows. From them a local search moves runs: successive passes
// of a stage at one clock.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/stage_clocks.hpp"

namespace rubato {

/// The plan that is best at given prices of time, stage by stage, and the bound that it gives.
struct PricedPlan {
  StagePlan plan;        ///< may end at any time
  double least_j = 0.0;  ///< cost + price_w x iteration time of any plan is at least this
  double price_w = 0.0;
};

/// Lagrangian relaxation. Every pass pays for each second the flow through it, every stall the flow
/// between the two passes around it. The problem then falls apart into stages: each finds its least
/// total by dynamic programming over its passes. Leads, dwells and the change from one iteration to
/// the next are left out, which only lowers the bound.
/// @param prices  a plan of sweep_frontier() for this work
[[nodiscard]] PricedPlan price_runs(const StageClocks& clocks, const FrontierPlan& prices);

/// Local search that lowers cost + penalty x lateness. It moves runs, parts of runs, or all passes
/// of one kind and clock. They go to clocks around theirs, or to clocks of the runs beside them.
/// While the plan is late the penalty rises.
class RunSearch {
 public:
  enum class Order { far_first, near_first };  ///< of the clocks around one

  /// @param price_w  the first penalty: what a second of the deadline is worth, roughly
  /// @param effort   passes looked at, at most, per start and penalty
  RunSearch(const StageClocks& clocks, double deadline_s, double price_w, double effort);

  /// @return a plan that ends by the deadline, or nothing if none was found
  [[nodiscard]] std::optional<StagePlan> improve(StagePlan start, Clocks among, Order order);

  /// What the search lowers, at the first penalty.
  [[nodiscard]] double value(const StagePlan& plan);

 private:
  struct Span {
    std::size_t first = 0, last = 0;  // positions in the row of the stage, both included
  };

  void measure();
  [[nodiscard]] bool descend_once();
  [[nodiscard]] bool try_stage(std::size_t stage);
  [[nodiscard]] bool try_run(std::size_t stage, const Span& run);
  [[nodiscard]] bool try_kinds(std::size_t stage);
  template <class Chosen>
  [[nodiscard]] bool try_move(std::size_t stage, const Span& span, SettingId to, Chosen chosen);
  [[nodiscard]] std::vector<SettingId> around(std::size_t stage, SettingId from) const;
  [[nodiscard]] bool is_critical(std::size_t stage, const Span& run) const;

  const StageClocks& clocks_;
  double deadline_s_, penalty_w_, effort_, spent_ = 0.0;
  StagePlan plan_;
  Clocks among_ = Clocks::all;
  Order order_ = Order::far_first;
  std::vector<double> stage_cost_j_, end_s_, latest_s_, trial_end_s_;
  double time_s_ = 0.0;
};

/// What search_runs() is asked.
struct RunQuestion {
  double target_s = 0.0;   ///< deadline of the search
  double limit_s = 0.0;    ///< what plans must keep: the search's, if no plan is found for target_s
  double price_w = 0.0;    ///< as for RunSearch
  double waiting_w = 0.0;  ///< power of all stages while they wait, counted over the iteration
  std::function<bool(const StagePlan&)> can_be_set;  ///< whether GPUs can be set to a plan
};

/// What was found.
struct FoundRuns {
  std::optional<StagePlan> plan;  ///< in time, can be set
  bool refused = false;           ///< one that cannot be set was cheaper than those before it
};

/// Searches from the starts of least value. Returns the cheapest of the plans found and the starts
/// themselves.
[[nodiscard]] FoundRuns search_runs(const StageClocks& clocks, const RunQuestion& question,
                                    const std::vector<StagePlan>& starts,
                                    const RunContext& context);

/// The cheaper of two plans, or the one there is.
/// @param waiting_w  as for search_runs()
[[nodiscard]] std::optional<StagePlan> cheapest_of(const StageClocks& clocks, double waiting_w,
                                                   std::optional<StagePlan> a,
                                                   std::optional<StagePlan> b);

}  // namespace rubato
