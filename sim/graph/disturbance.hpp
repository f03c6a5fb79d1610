#pragma once
// What may go differently from a graph's times: stragglers (ranks with a slower or throttled GPU or
// a slower link), and jitter. On the disturbed graph the planner finds what the other ranks can
// save while they wait.

#include <cstdint>
#include <vector>

#include "sim/graph/graph_model.hpp"

namespace rubato {

/// A rank whose kernels, or whose communication, take `factor` times as long.
struct RankSlowdown {
  std::uint32_t rank = 0;
  double factor = 1.0;  ///< >= 1

  friend bool operator==(const RankSlowdown&, const RankSlowdown&) = default;
};

/// A rank held at a lower core clock or power limit, by heat or by whoever runs it, or one that
/// draws more than others; see GpuThrottle.
struct RankThrottle {
  std::uint32_t rank = 0;
  GpuThrottle throttle;
};

/// Several factors of one rank multiply. Of several throttles of one rank the lowest clock and the
/// lowest power limit count; factors of power multiply.
struct GraphDisturbance {
  std::vector<RankSlowdown> gpus = {};   ///< of kernels, but those of communication
  std::vector<RankSlowdown> links = {};  ///< of communication: its slowest rank counts
  std::vector<RankThrottle> throttles = {};
  double jitter_frac = 0.0;  ///< standard deviation of log time of each kernel, 0 to 1
  std::uint64_t seed = 1;    ///< of the jitter

  [[nodiscard]] bool none() const noexcept {
    return gpus.empty() && links.empty() && throttles.empty() && jitter_frac == 0.0;
  }
};

/// Time of each activity over its captured time, shape [activities], for GraphModel::with_slowdown.
/// @throws UsageError for a rank that the graph does not have, a factor that is not a number >= 1,
///         jitter outside 0 to 1
[[nodiscard]] std::vector<double> slowdown_of(const ExecutionGraph& graph,
                                              const GraphDisturbance& disturbance);

/// The model of the graph as disturbed. @throws UsageError as slowdown_of and
/// GraphModel::with_throttles
[[nodiscard]] GraphModel disturbed(const GraphModel& model, const GraphDisturbance& disturbance);

}  // namespace rubato
