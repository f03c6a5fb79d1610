#pragma once
// Which passes of a step make a replay end late: those that ParallelPlanner speeds up.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "sim/graph/simulator.hpp"

namespace rubato {

/// One graph with its passes.
class LatePasses {
 public:
  /// @param graph     must outlive this
  /// @param baseline  the default clocks, replayed
  /// @param pass_of_activity  shape [activities]; nothing: in no pass
  LatePasses(const ExecutionGraph& graph, const GraphRun& baseline,
             std::vector<std::optional<std::uint32_t>> pass_of_activity);

  /// Sets of passes, in the order in which they are worth speeding up. The first set has the passes
  /// at whose clocks the critical path runs. The second has those that keep messages beside it
  /// waiting: a message that was posted ahead slows down the kernels beside it until its other side
  /// has come. So, of messages that last longer than at the default clocks, it has the passes on
  /// the path to the late side. And so on: the third has those that keep messages beside these
  /// waiting.
  [[nodiscard]] std::vector<std::set<std::uint32_t>> of(const GraphRun& run) const;

 private:
  // A rank's part in a message or collective of several ranks.
  struct Hold {
    std::uint32_t arrival = 0, departure = 0, transfer = 0;
    double baseline_s = 0.0;  // from arrival to departure, at the default clocks
  };

  template <class Visit>
  void walk_back(const GraphRun& run, std::uint32_t from, std::vector<bool>& seen,
                 const Visit& visit) const;
  void add_leading(const GraphRun& run, std::uint32_t activity,
                   std::set<std::uint32_t>& passes) const;
  void add_late_sides(const GraphRun& run, std::uint32_t activity,
                      std::set<std::uint32_t>& arrivals) const;

  const ExecutionGraph& graph_;
  std::vector<std::optional<std::uint32_t>> pass_of_activity_;
  std::vector<std::vector<std::uint32_t>> leading_;    // of each GPU: launches of its main stream
  std::vector<std::vector<std::vector<Hold>>> holds_;  // of each GPU and stream with some, in order
};

}  // namespace rubato
