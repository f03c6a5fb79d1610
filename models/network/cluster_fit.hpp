#pragma once
// A cluster's bandwidths and latencies fitted to the collectives of a captured run: a start for
// those who have a capture and no table of nccl-tests. docs/network.md, section 3.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/network/cluster.hpp"
#include "models/network/parameters.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// One kind of message of a captured run: what it took, over all its launches.
struct ObservedCollective {
  Collective message;
  std::uint32_t launches = 0;
  double time_s = 0.0;  ///< > 0
};

/// What a run's collectives took, by kind, ranks, stride and bytes.
/// @param captures  of the ranks of one run. Of several ranks: the median over launches of the time
///                  from the last rank's arrival to the first end; a collective of which a rank is
///                  missing is left out. Of one rank, which does not tell how long a launch waited
///                  for others: the shortest launch of each message
/// @throws DataError as join_ranks
[[nodiscard]] std::vector<ObservedCollective> observed_collectives(
    std::span<const Capture> captures);

/// A fitted number, and the least and most it becomes when one message is left out (jackknife).
struct FittedNumber {
  double value = 0.0, low = 0.0, high = 0.0;
};

/// A cluster as collectives ran on it. A number that is missing is one the messages do not tell:
/// `cluster` has the frame's.
struct ClusterFit {
  ClusterSpec cluster;
  std::optional<FittedNumber> inside_gbs, between_gbs, inside_latency, between_latency;
};

/// Fits bandwidths and latencies: least pseudo-Huber loss (robust to outliers) of errors of
/// ln(time), every message with the same weight. A number counts as told by the messages if
/// doubling it, the other numbers fitted again (profile likelihood), raises the loss by at least as
/// much as an error of 10 % in one message's time adds. And there must be more messages than
/// numbers.
/// @param frame     its nodes and kinds of links hold
/// @param observed  not empty
/// @throws UsageError if the frame has too few GPUs
[[nodiscard]] ClusterFit fit_cluster(const ClusterSpec& frame,
                                     std::span<const ObservedCollective> observed,
                                     const NetworkParameters& parameters);

/// The file of a cluster, as load_cluster reads it.
[[nodiscard]] std::string cluster_file(const ClusterSpec& cluster);

}  // namespace rubato
