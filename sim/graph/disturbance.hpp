#pragma once
// What may go differently from a graph's times: ranks with a slower GPU or link, jitter. What the
// others can save while they wait is what the planner finds on the disturbed graph.

#include <cstdint>
#include <vector>

#include "traces/graph/execution_graph.hpp"

namespace rubato {

/// A rank whose kernels, or whose communication, take that many times as long.
struct RankSlowdown {
  std::uint32_t rank = 0;
  double factor = 1.0;  ///< >= 1

  friend bool operator==(const RankSlowdown&, const RankSlowdown&) = default;
};

/// Factors multiply where several are of one rank.
struct GraphDisturbance {
  std::vector<RankSlowdown> gpus = {};   ///< kernels, but those of communication
  std::vector<RankSlowdown> links = {};  ///< communication it takes part in: the slowest counts
  double jitter_frac = 0.0;              ///< standard deviation of log time of each kernel, 0 to 1
  std::uint64_t seed = 1;                ///< of the jitter

  [[nodiscard]] bool none() const noexcept {
    return gpus.empty() && links.empty() && jitter_frac == 0.0;
  }
};

/// What each activity takes over what was captured, shape [activities]: for
/// GraphModel::with_slowdown.
/// @throws UsageError for a rank that the graph does not have, a factor that is not a number >= 1,
///         jitter outside 0 to 1
[[nodiscard]] std::vector<double> slowdown_of(const ExecutionGraph& graph,
                                              const GraphDisturbance& disturbance);

}  // namespace rubato
