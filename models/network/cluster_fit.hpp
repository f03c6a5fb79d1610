#pragma once
// A cluster's bandwidth and latency from the collectives of a captured run: a start for who has a
// capture and no table of nccl-tests. docs/network.md, section 3.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/network/cluster.hpp"
#include "models/network/parameters.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// A message of a captured run: what it took, over all launches of it.
struct ObservedCollective {
  Collective message;
  std::uint32_t launches = 0;
  double time_s = 0.0;  ///< > 0
};

/// What a run's collectives took, by kind, ranks and bytes.
/// @param captures  of the ranks of one run: medians from the last rank's arrival to the first end,
///                  collectives of which a rank is missing left out.
///                  One alone does not tell how long a launch waited: the shortest of each message
/// @throws DataError as join_ranks
[[nodiscard]] std::vector<ObservedCollective> observed_collectives(
    std::span<const Capture> captures);

/// A fitted number, and the least and most it becomes without one of the messages.
struct FittedNumber {
  double value = 0.0, low = 0.0, high = 0.0;
};

/// A cluster as collectives went on it. Nothing: the messages do not tell, the frame's stays.
struct ClusterFit {
  ClusterSpec cluster;
  std::optional<FittedNumber> inside_gbs, between_gbs, latency_scale;
};

/// Bandwidths and latency with least robust error of ln(time), every message with the same weight.
/// One is told if twice as much of it fits worse with the others fitted again, by what a tenth of a
/// message's time adds to the loss, and only as long as there are more messages than numbers.
/// @param frame     its nodes and kinds of links hold
/// @param observed  not empty
/// @throws UsageError if the frame has too few GPUs
[[nodiscard]] ClusterFit fit_cluster(const ClusterSpec& frame,
                                     std::span<const ObservedCollective> observed,
                                     const NetworkParameters& parameters);

/// The file of a cluster, as load_cluster reads it.
[[nodiscard]] std::string cluster_file(const ClusterSpec& cluster);

}  // namespace rubato
