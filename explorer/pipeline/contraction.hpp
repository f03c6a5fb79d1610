#pragma once
// A smaller problem with the same frontier. In a captured run most activities can only follow one
// other activity, and most arcs never decide a start.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "explorer/pipeline/frontier.hpp"

namespace rubato {

/// A CrashProblem made smaller without a change of its frontier. What goes cannot matter, whatever
/// durations on the curves are chosen:
/// - An arc goes if another arc into the same activity never ends earlier: not even with all that
///   is before this one at its slowest and all that is before the other at its fastest.
/// - An activity with one possible duration that waits for one other goes. Those that wait for it
///   then wait for that other one, so much longer.
/// - Activities in a row, each the only follower of the one before and waiting for that only,
///   become one activity. Its curve is the sum of theirs, the steepest segments of all first.
class Contraction {
 public:
  /// @throws DataError if the problem has a cycle, is empty or an activity has no curve
  explicit Contraction(const CrashProblem& problem);

  [[nodiscard]] const CrashProblem& problem() const noexcept { return small_; }

  /// The frontier of the whole problem, from that of the contracted one. In its plans activities
  /// that went have no flow_w: what they cost the flow is in lag_cost_j, so that bounds hold for
  /// the whole problem. arc_flow_w has all dependencies, those of activities that went included. In
  /// a row at most one activity is between two vertices of its curve.
  /// @param frontier  of problem()
  [[nodiscard]] Frontier expanded(Frontier frontier) const;

  /// The same of one plan.
  void expand(FrontierPlan& plan) const;

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  // "No earlier than `lag_s` after the end of `from`", which may be the origin.
  struct Wait {
    std::uint32_t from = 0;
    double lag_s = 0.0;
    std::uint32_t by = none;          // as the problem names it: from, or an activity that went
    std::uint32_t dependency = none;  // its number in the whole problem, if it has one
  };
  // Earliest end of each activity with everything at its fastest, and with everything at its
  // slowest. For an activity that went: the wait that takes its place.
  struct Ends {
    std::vector<double> first_s, last_s;
    std::vector<Wait> stands_for;
  };
  // A segment of an activity's curve, between two vertices.
  struct Segment {
    std::uint32_t activity = 0;
    double time_s = 0.0, saved_j = 0.0;

    [[nodiscard]] double slope_w() const { return saved_j / time_s; }
  };
  // Activities in a row.
  struct Row {
    std::vector<std::uint32_t> activities;
    double lag_s = 0.0;             // sum of the lags between them
    double fastest_s = 0.0;         // all at their fastest, lags included
    std::vector<Segment> segments;  // steepest first
  };

  void find_waits(const CrashProblem& problem);
  void keep_binding(std::vector<Wait>& waits, const Ends& ends) const;
  void set_ends(std::uint32_t activity, const CostCurve& curve, Ends& ends) const;
  void find_rows(const CrashProblem& problem);
  void add_row(const CrashProblem& problem, Row row);
  void connect_rows();
  [[nodiscard]] std::vector<double> arc_flows_w(const FrontierPlan& plan) const;

  std::vector<double> fixed_s_;           // shape [activities], durations at their fastest
  std::vector<std::vector<Wait>> waits_;  // shape [activities + 2]; empty for those that went
  std::vector<bool> kept_;                // shape [activities + 2]
  std::vector<std::uint32_t> row_of_;     // shape [activities + 2]
  std::vector<Row> rows_;
  std::vector<Wait> wait_of_gone_;   // shape [activities]: what each that went waits for
  std::vector<std::uint32_t> gone_;  // activities that went, each after what it waits for
  std::size_t dependencies_ = 0;
  double cost_of_gone_j_ = 0.0;
  CrashProblem small_;
};

}  // namespace rubato
