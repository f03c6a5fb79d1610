#pragma once
// How long a collective takes: the fastest of the algorithms that NCCL has for it, each a pipeline
// that is cut into pieces of the best size.
// Formulas and measured errors: docs/network.md.

#include <cstdint>
#include <string_view>

#include "models/network/cluster.hpp"
#include "models/network/parameters.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Ranks of a collective, equally many on each node, and the links between them.
struct CollectiveGroup {
  double ranks = 2.0;  ///< >= 2
  double nodes = 1.0;  ///< 1 to ranks
  LinkKind inside = LinkKind::nvlink;
  LinkKind between = LinkKind::rdma;                   ///< of no meaning on one node
  double inside_gbs = NetworkParameters::nvlink_gbs;   ///< bus bandwidth inside a node, GB/s, > 0
  double inside_latency = 1.0, between_latency = 1.0;  ///< factors as Link::latency_scale

  friend bool operator==(const CollectiveGroup&, const CollectiveGroup&) = default;
};

enum class CollectiveAlgorithm { ring, tree, in_switch, pairs };
[[nodiscard]] std::string_view name_of(CollectiveAlgorithm value) noexcept;

/// What a collective takes, and how.
struct CollectiveTime {
  double time_s = 0.0;  ///< > 0
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
};

/// Bytes that each rank sends over its link, as a share of the message, in (0, 2]. In the words of
/// nccl-tests: bus bandwidth over algorithm bandwidth. For n ranks 2 (n - 1) / n of all-reduces,
/// (n - 1) / n of all-gathers, reduce-scatters and all-to-alls, else 1.
/// Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] double bus_factor(CollectiveKind kind, double ranks);

/// Time of one collective from the moment all its ranks have arrived.
/// @param message_bytes  full buffer as in Collective, > 0
/// @param bus_gbs        bus bandwidth of endless messages, GB/s, > 0
[[nodiscard]] CollectiveTime collective_time(const NetworkParameters& parameters,
                                             CollectiveKind kind, const CollectiveGroup& group,
                                             double message_bytes, double bus_gbs);

/// The same on a cluster. Ranks are `stride` GPUs apart: 1 for neighbours; the tensor-parallel
/// degree for data parallelism beside tensor parallelism. The GPUs in between run the same
/// collective at the same time.
/// @throws UsageError if the cluster has too few GPUs
[[nodiscard]] CollectiveTime collective_time(const ClusterSpec& cluster,
                                             const Collective& collective,
                                             const NetworkParameters& parameters);

}  // namespace rubato
