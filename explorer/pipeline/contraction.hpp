#pragma once
// A smaller problem with the same frontier: of a captured run most activities can only follow
// another one, and most arcs never decide a start.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "explorer/pipeline/frontier.hpp"

namespace rubato {

/// A CrashProblem without what no durations on its curves can make matter, exactly:
/// - an arc whose other end starts later by another one, at the slowest of the one and the fastest
/// of
///   the other;
/// - an activity of one duration that waits for one thing: who waits for it waits for that;
/// - activities in a row, each the only one to follow and the only one to be followed: they become
///   one, whose curve is the sum of theirs (the steepest parts of all first).
class Contraction {
 public:
  /// @throws DataError if the problem has a cycle, is empty or an activity has no curve
  explicit Contraction(const CrashProblem& problem);

  [[nodiscard]] const CrashProblem& problem() const noexcept { return small_; }

  /// The frontier of the whole problem. Of plans, activities that went have no flow: it is in
  /// FrontierPlan::lag_cost_j, so that bounds are those of the whole problem; FrontierPlan::
  /// arc_flow_w is of all dependencies, through activities that went too. In a row at most one
  /// activity is between two vertices of its curve.
  /// @param frontier  of problem()
  [[nodiscard]] Frontier expanded(Frontier frontier) const;

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  // "No earlier than `lag_s` after the end of `from`", which may be the origin.
  struct Wait {
    std::uint32_t from = 0;
    double lag_s = 0.0;
    std::uint32_t by = none;          // what it named: from, or what went and stands for it
    std::uint32_t dependency = none;  // of the whole problem, if it is one
  };
  // When activities end at the earliest, everything at its fastest and at its slowest; of those
  // that went, what their end comes after.
  struct Ends {
    std::vector<double> first_s, last_s;
    std::vector<Wait> stands_for;
  };
  // Part of a curve of an activity.
  struct Segment {
    std::uint32_t activity = 0;
    double time_s = 0.0, saved_j = 0.0;

    [[nodiscard]] double slope_w() const { return saved_j / time_s; }
  };
  // Activities in a row.
  struct Row {
    std::vector<std::uint32_t> activities;
    double lag_s = 0.0;             // between them
    double fastest_s = 0.0;         // with lags
    std::vector<Segment> segments;  // steepest first
  };

  void find_waits(const CrashProblem& problem);
  void keep_binding(std::vector<Wait>& waits, const Ends& ends) const;
  void set_ends(std::uint32_t activity, const CostCurve& curve, Ends& ends) const;
  void find_rows(const CrashProblem& problem);
  void add_row(const CrashProblem& problem, Row row);
  void connect_rows();
  void expand(FrontierPlan& plan) const;
  [[nodiscard]] std::vector<double> arc_flows_w(const FrontierPlan& plan) const;

  std::vector<double> fixed_s_;           // shape [activities], at their fastest
  std::vector<std::vector<Wait>> waits_;  // shape [activities + 2]; empty for those that went
  std::vector<bool> kept_;                // shape [activities + 2]
  std::vector<std::uint32_t> row_of_;     // shape [activities + 2]
  std::vector<Row> rows_;
  std::vector<Wait> wait_of_gone_;   // shape [activities], of those that went, as named
  std::vector<std::uint32_t> gone_;  // each after what it waits for
  std::size_t dependencies_ = 0;
  double cost_of_gone_j_ = 0.0;
  CrashProblem small_;
};

/// sweep_frontier of the contracted problem, expanded.
[[nodiscard]] Frontier sweep_contracted(const Contraction& contraction,
                                        const FrontierOptions& options,
                                        const RunContext& context = {});

}  // namespace rubato
