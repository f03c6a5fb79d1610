#pragma once
// What may go differently from a graph's times: ranks with a slower or throttled GPU or a slower
// link, jitter. What the others can save while they wait is what the planner finds on the disturbed
// graph.

#include <cstdint>
#include <vector>

#include "sim/graph/graph_model.hpp"

namespace rubato {

/// A rank whose kernels, or whose communication, take that many times as long.
struct RankSlowdown {
  std::uint32_t rank = 0;
  double factor = 1.0;  ///< >= 1

  friend bool operator==(const RankSlowdown&, const RankSlowdown&) = default;
};

/// A rank that is held back by heat or by whoever runs it, at a lower core clock or a lower power
/// limit; see GpuThrottle.
struct RankThrottle {
  std::uint32_t rank = 0;
  GpuThrottle throttle;
};

/// Factors multiply where several are of one rank; of throttles the lowest of each kind counts.
struct GraphDisturbance {
  std::vector<RankSlowdown> gpus = {};   ///< kernels, but those of communication
  std::vector<RankSlowdown> links = {};  ///< communication it takes part in: the slowest counts
  std::vector<RankThrottle> throttles = {};
  double jitter_frac = 0.0;  ///< standard deviation of log time of each kernel, 0 to 1
  std::uint64_t seed = 1;    ///< of the jitter

  [[nodiscard]] bool none() const noexcept {
    return gpus.empty() && links.empty() && throttles.empty() && jitter_frac == 0.0;
  }
};

/// What each activity takes over what was captured, shape [activities]: for
/// GraphModel::with_slowdown.
/// @throws UsageError for a rank that the graph does not have, a factor that is not a number >= 1,
///         jitter outside 0 to 1
[[nodiscard]] std::vector<double> slowdown_of(const ExecutionGraph& graph,
                                              const GraphDisturbance& disturbance);

/// The model of the graph as disturbed. @throws UsageError as slowdown_of and
/// GraphModel::with_throttles
[[nodiscard]] GraphModel disturbed(const GraphModel& model, const GraphDisturbance& disturbance);

}  // namespace rubato
