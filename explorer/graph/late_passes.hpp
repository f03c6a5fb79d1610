#pragma once
// Which passes of a step make a replay end late: what ParallelPlanner speeds up.

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
  /// @param pass_of_activity  shape [activities], nothing: of none
  LatePasses(const ExecutionGraph& graph, const GraphRun& baseline,
             std::vector<std::optional<std::uint32_t>> pass_of_activity);

  /// Passes, each once a set. First those whose clock the path that ends last runs at. Then those
  /// that it waits for: a message that was posted ahead slows down the kernels beside it until its
  /// other side has come, so of messages that last longer than at default clocks, all passes that
  /// their late sides came through. Then those that these wait for, and so on.
  [[nodiscard]] std::vector<std::set<std::uint32_t>> of(const GraphRun& run) const;

 private:
  // A rank's part in a message or collective of several ranks.
  struct Hold {
    std::uint32_t arrival = 0, departure = 0, transfer = 0;
    double baseline_s = 0.0;
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
  std::vector<std::vector<std::uint32_t>> leading_;    // of each GPU: on its main stream
  std::vector<std::vector<std::vector<Hold>>> holds_;  // of each GPU and stream with some, in order
};

}  // namespace rubato
