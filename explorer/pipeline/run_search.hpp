#pragma once
// Plans of few changes of clock: starts from the prices of time that a frontier knows, then a
// local search over runs of passes with one clock.

#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/stage_clocks.hpp"

namespace rubato {

/// The plan that is best at given prices of time, stage by stage, and what follows from it.
struct PricedPlan {
  StagePlan plan;        ///< may end at any time
  double least_j = 0.0;  ///< cost + price_w x time of any plan is at least this
  double price_w = 0.0;
};

/// Lagrangian relaxation: every pass pays its flow per second, every stall the flow between the
/// passes around it, and each stage takes its least total by dynamic programming over its passes.
/// Leads, dwells and the change from one iteration to the next are left out, which keeps the bound.
/// @param prices  a plan of sweep_frontier() for this work
[[nodiscard]] PricedPlan price_runs(const StageClocks& clocks, const FrontierPlan& prices);

/// Descent on cost + penalty x lateness: runs, parts of runs and all passes of one kind and clock
/// go to neighbouring clocks or to those of the runs beside them.
class RunSearch {
 public:
  /// @param price_w  what a second of the deadline is worth, roughly: the first penalty
  /// @param effort   passes looked at, at most, per start
  RunSearch(const StageClocks& clocks, double deadline_s, double price_w, double effort);

  /// @return the plan, ending by the deadline, or nothing if no way there was found
  [[nodiscard]] std::optional<StagePlan> improve(StagePlan start);

  /// What the search makes smaller, at the first penalty.
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
  [[nodiscard]] bool is_critical(std::size_t stage, const Span& run) const;
  [[nodiscard]] std::vector<SettingId> targets(std::size_t stage, SettingId from) const;

  const StageClocks& clocks_;
  double deadline_s_, penalty_w_, effort_, spent_ = 0.0;
  StagePlan plan_;
  std::vector<double> stage_cost_j_, end_s_, latest_s_, trial_end_s_;
  double time_s_ = 0.0;
};

/// Searches from the starts of least value; of these plans and the starts themselves the cheapest
/// one that ends in time, if there is one.
/// @param waiting_w  drawn while the iteration lasts
[[nodiscard]] std::optional<StagePlan> search_runs(const StageClocks& clocks, double target_s,
                                                   double limit_s, double price_w, double waiting_w,
                                                   const std::vector<StagePlan>& starts,
                                                   const RunContext& context);

/// @param waiting_w  drawn while the iteration lasts
[[nodiscard]] std::optional<StagePlan> cheapest_of(const StageClocks& clocks, double waiting_w,
                                                   std::optional<StagePlan> a,
                                                   std::optional<StagePlan> b);

}  // namespace rubato
