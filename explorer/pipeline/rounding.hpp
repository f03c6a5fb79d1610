#pragma once
// From free durations to clocks that were measured, within a deadline.

#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "sim/pipeline_run.hpp"
#include "traces/pipeline/profile.hpp"

namespace rubato {

/// Which part of an iteration has the clocks of the slower plan.
enum class SlowPart { begin, end, both_ends, middle };

/// Picks options for all passes of one piece of work. It holds the graph, which many deadlines
/// share.
class ClockRounder {
 public:
  /// @param work  must outlive the rounder
  explicit ClockRounder(const PipelineWork& work);

  /// Every pass gets the slowest option that is no longer than its duration, of all options or of
  /// vertices of hulls only. Then slack is spent, the largest savings per second first. The cheaper
  /// of both plans counts.
  /// @param duration_s  shape [passes], e.g. of a FrontierPlan
  /// @return a plan that ends by the deadline, or nothing if neither does
  [[nodiscard]] std::optional<PipelinePlan> round(std::span<const double> duration_s,
                                                  double deadline_s) const;

  /// Where hulls are straight over a long way, the free durations of most passes lie between two
  /// clocks at once, and rounding each of them costs much. Instead two plans are spliced: one part
  /// of the iteration (`slow_part`) gets the clocks of a slower plan, the rest those of a faster
  /// one. The slower part is as large as the deadline allows. Then slack is spent.
  /// @param slow_s, fast_s  durations of plans that end after and before the deadline
  [[nodiscard]] std::optional<PipelinePlan> splice(std::span<const double> slow_s,
                                                   std::span<const double> fast_s,
                                                   double deadline_s, SlowPart slow_part) const;

  /// The plan of least energy for the passes of one stage, which run one after the other: an exact
  /// search. Nothing if it ends after the deadline, for several stages, and beyond 64 passes.
  /// @param waiting_w  power of a second beyond the passes, W: blocked power, or 0 if it is
  ///                   drawn until the deadline anyway
  [[nodiscard]] std::optional<PipelinePlan> in_a_row(double deadline_s, double waiting_w,
                                                     const RunContext& context) const;

  /// Time with every pass at its fastest option: no plan is faster.
  [[nodiscard]] double least_time_s() const;

  /// Length of the longest path (critical path) under a plan: the iteration time.
  [[nodiscard]] double time_s(const PipelinePlan& plan) const;

  /// Energy of all passes minus blocked power x the sum of their times.
  [[nodiscard]] double cost_j(const PipelinePlan& plan) const;

 private:
  // An option on the Pareto front of a pass: no other one is as fast and as cheap.
  struct Choice {
    OptionId option;
    double time_s = 0.0;
    double cost_j = 0.0;  // energy minus blocked power x time
    bool vertex = false;  // on the lower convex hull
  };
  struct Edge {
    std::uint32_t to = 0;
    double lag_s = 0.0;
  };

  // Options worth choosing for a pass, fastest first.
  [[nodiscard]] const std::vector<Choice>& choices(std::uint32_t pass) const {
    return choices_of_type_[index(work_.type_of_pass[pass])];
  }
  [[nodiscard]] std::vector<std::uint32_t> floor(std::span<const double> duration_s,
                                                 bool vertices_only) const;
  [[nodiscard]] double chosen_cost_j(const std::vector<std::uint32_t>& chosen) const;
  [[nodiscard]] bool spend_all(std::vector<std::uint32_t>& chosen, double deadline_s) const;
  [[nodiscard]] std::vector<std::uint32_t> by_start(const std::vector<std::uint32_t>& chosen) const;
  double spend_slack(std::vector<std::uint32_t>& chosen, double deadline_s, double price_w) const;
  template <class Duration>
  double run(Duration duration_s, std::vector<double>& start_s) const;
  [[nodiscard]] double end_s(const std::vector<std::uint32_t>& chosen) const;
  [[nodiscard]] PipelinePlan plan_of(const std::vector<std::uint32_t>& chosen) const;

  const PipelineWork& work_;
  std::vector<std::vector<Choice>> choices_of_type_;  // Pareto front, fastest first
  std::vector<std::uint32_t> order_;                  // topological order of the passes
  std::vector<std::uint32_t> first_edge_;
  std::vector<Edge> edges_;
  double steepest_w_ = 0.0;  // largest saving per second between neighbouring choices
};

}  // namespace rubato
