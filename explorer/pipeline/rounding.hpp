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

/// An option on the Pareto front of a pass: no other one is as fast and as cheap.
struct ClockChoice {
  OptionId option;
  double time_s = 0.0;
  double cost_j = 0.0;  ///< energy minus blocked power x time
  bool vertex = false;  ///< on the lower convex hull
};

/// Picks options for all passes of one piece of work. It holds the graph, which many deadlines
/// share.
class ClockRounder {
 public:
  /// @param work  must outlive the rounder
  explicit ClockRounder(const PipelineWork& work);

  /// Every pass gets the cheapest option that is no longer than its duration. Then slack is spent,
  /// the largest savings per second first. That is done in four ways, and the cheapest plan counts:
  /// each pass by itself, or along the schedule so that time saved before a pass is there for it;
  /// with any options, or with vertices of hulls only.
  /// @param duration_s  shape [passes], e.g. of a FrontierPlan
  /// @return a plan that ends by the deadline, or nothing if none of the four does
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

  /// Splices two plans of clocks. Nothing if the faster one ends after the deadline.
  [[nodiscard]] std::optional<PipelinePlan> splice(const PipelinePlan& slow,
                                                   const PipelinePlan& fast, double deadline_s,
                                                   SlowPart slow_part) const;

  /// Rounds each pass down, without spending slack. The plan need not end by any time.
  [[nodiscard]] PipelinePlan rounded_down(std::span<const double> duration_s) const;

  /// The plan of least energy for the passes of one stage, which run one after the other: an exact
  /// search. Nothing if it ends after the deadline, for several stages, and beyond 64 passes.
  /// @param waiting_w  power of a second beyond the passes, W: blocked power, or 0 if it is
  ///                   drawn until the deadline anyway
  [[nodiscard]] std::optional<PipelinePlan> in_a_row(double deadline_s, double waiting_w,
                                                     const RunContext& context) const;

  /// Time with every pass at its fastest option: no plan is faster.
  [[nodiscard]] double least_time_s() const;

  /// Options worth choosing for a pass, fastest first.
  [[nodiscard]] const std::vector<ClockChoice>& choices(std::uint32_t pass) const {
    return choices_of_type_[index(work_.type_of_pass[pass])];
  }

  /// Length of the longest path (critical path) under a plan: the iteration time.
  [[nodiscard]] double time_s(const PipelinePlan& plan) const;

  /// Energy of all passes minus blocked power x the sum of their times.
  [[nodiscard]] double cost_j(const PipelinePlan& plan) const;

 private:
  using Choice = ClockChoice;
  struct Edge {
    std::uint32_t to = 0;
    double lag_s = 0.0;
  };

  [[nodiscard]] std::uint32_t slowest_within(std::uint32_t pass, double duration_s, double spare_s,
                                             bool vertices_only) const;
  [[nodiscard]] std::vector<std::uint32_t> floor(std::span<const double> duration_s,
                                                 bool vertices_only) const;
  [[nodiscard]] std::vector<std::uint32_t> follow(std::span<const double> duration_s,
                                                  bool vertices_only) const;
  [[nodiscard]] double chosen_cost_j(const std::vector<std::uint32_t>& chosen) const;
  [[nodiscard]] bool spend_all(std::vector<std::uint32_t>& chosen, double deadline_s) const;
  [[nodiscard]] std::vector<std::uint32_t> by_start(const std::vector<std::uint32_t>& chosen) const;
  double spend_slack(std::vector<std::uint32_t>& chosen, double deadline_s, double price_w) const;
  template <class Duration>
  double run(Duration duration_s, std::vector<double>& start_s) const;
  [[nodiscard]] double end_s(const std::vector<std::uint32_t>& chosen) const;
  [[nodiscard]] std::optional<PipelinePlan> spliced(const std::vector<std::uint32_t>& slow,
                                                    const std::vector<std::uint32_t>& fast,
                                                    double deadline_s, SlowPart slow_part) const;
  /// Positions in choices(). Nothing if the plan has a dominated option, which is in no such list.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> chosen_of(const PipelinePlan& plan) const;
  [[nodiscard]] PipelinePlan plan_of(const std::vector<std::uint32_t>& chosen) const;

  const PipelineWork& work_;
  std::vector<std::vector<Choice>> choices_of_type_;  // Pareto front, fastest first
  std::vector<std::uint32_t> order_;                  // topological order of the passes
  std::vector<std::uint32_t> first_edge_;
  std::vector<Edge> edges_;
  double steepest_w_ = 0.0;  // largest saving per second between neighbouring choices
};

}  // namespace rubato
