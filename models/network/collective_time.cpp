#include "models/network/collective_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

namespace {

// Links that a message passes one after the other.
struct Hops {
  double inside = 0.0;
  double between = 0.0;
};

struct Path {
  double latency_s = 0.0;
  double low_latency_slowdown = 0.0;
  double simple_s = 0.0;
};

void add_hops(Path& path, const LinkParameters& link, double hops, double waited_share) {
  if (hops <= 0.0) return;
  path.latency_s += link.hop_s * hops * waited_share;
  path.low_latency_slowdown += link.low_latency_slowdown * std::pow(hops, link.low_latency_growth);
  path.simple_s += link.simple_s * std::pow(hops, link.simple_growth);
}

// Low-latency protocols (LL, LL128) send a flag with every few bytes; the Simple protocol fills a
// pipeline of large pieces.
CollectiveTime faster_protocol(const Path& path, double bus_s, double slowdown,
                               CollectiveAlgorithm algorithm, double latency_scale) {
  const double low_latency_s = bus_s * std::max(path.low_latency_slowdown, 1.0);
  const double simple_s = path.simple_s * std::sqrt(latency_scale) + bus_s * slowdown;
  return {.time_s = path.latency_s * latency_scale + std::min(low_latency_s, simple_s),
          .algorithm = algorithm,
          .low_latency = low_latency_s < simple_s};
}

bool between_pairs(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
}

CollectiveTime pairs_time(const NetworkParameters& p, CollectiveKind kind,
                          const CollectiveGroup& group, double bus_s, double latency_scale) {
  const double per_node = group.ranks / group.nodes;
  Hops peers{per_node - 1.0, group.ranks - per_node};
  if (kind == CollectiveKind::send_recv)
    peers = group.nodes > 1.0 ? Hops{0.0, 1.0} : Hops{1.0, 0.0};
  const Path path{.latency_s = p.launch_s + peers.inside * p.of(group.inside).peer_s +
                               peers.between * p.of(group.between).peer_s,
                  .low_latency_slowdown = p.peer_slowdown,
                  .simple_s = p.peer_simple_s};
  return faster_protocol(path, bus_s, 1.0, CollectiveAlgorithm::pairs, latency_scale);
}

// The share of hops' latency that one message waits for. Broadcast and reduce are chains, which
// hand on the next message meanwhile.
double waited_share(const NetworkParameters& p, CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ? p.chain_share : 1.0;
}

CollectiveTime along(const NetworkParameters& p, CollectiveKind kind, const CollectiveGroup& group,
                     const Hops& hops, CollectiveAlgorithm algorithm, double bus_s,
                     double latency_scale) {
  Path path{.latency_s = p.launch_s, .low_latency_slowdown = 0.0, .simple_s = 0.0};
  add_hops(path, p.of(group.inside), hops.inside, waited_share(p, kind));
  add_hops(path, p.of(group.between), hops.between, waited_share(p, kind));
  const double slowdown = algorithm == CollectiveAlgorithm::tree ? p.tree_slowdown : 1.0;
  return faster_protocol(path, bus_s, slowdown, algorithm, latency_scale);
}

// Which nodes the ranks lie on, and the bus bandwidth of one rank while all GPUs of a node send.
struct Placement {
  CollectiveGroup group;
  double bus_gbs = 0.0;
};

Placement placed(const ClusterSpec& cluster, const Collective& collective) {
  const double ranks = std::max(collective.group_size, 1U), stride = collective.stride;
  const double per_node = std::clamp(std::floor(cluster.gpus_per_node / stride), 1.0, ranks);
  Placement place{.group = {.ranks = ranks,
                            .nodes = std::ceil(ranks / per_node),
                            .inside = cluster.inside.kind},
                  .bus_gbs = cluster.inside.bus_gbs};
  if (place.group.nodes <= 1.0 || !cluster.between) return place;
  place.group.between = cluster.between->kind;
  // A ring crosses between nodes once for all ranks of a node, over all their links; a rank of an
  // all-to-all sends to each rank elsewhere over its own.
  const double shared = collective.kind == CollectiveKind::all_to_all
                            ? (ranks - 1.0) / (ranks - per_node)
                            : (collective.kind == CollectiveKind::send_recv ? 1.0 : per_node);
  place.bus_gbs = std::min(place.bus_gbs, shared * cluster.between->bus_gbs);
  return place;
}

void check_fits(const ClusterSpec& cluster, const Collective& collective) {
  const std::uint64_t span =
      (std::max<std::uint64_t>(collective.group_size, 1) - 1) * collective.stride + 1;
  if (span <= cluster.gpus()) return;
  throw UsageError(
      fmt::format("a collective of {} ranks, {} apart, needs {} GPUs; {} has {} ({} x {})",
                  collective.group_size, collective.stride, span, cluster.name, cluster.gpus(),
                  cluster.nodes, cluster.gpus_per_node),
      {.in = {}, .hint = "lower the parallel degrees, or give a larger cluster with --cluster"});
}

}  // namespace

std::string_view name_of(CollectiveAlgorithm value) noexcept {
  switch (value) {
    case CollectiveAlgorithm::tree: return "tree";
    case CollectiveAlgorithm::in_switch: return "in switch";
    case CollectiveAlgorithm::pairs: return "pairs";
    case CollectiveAlgorithm::ring: break;
  }
  return "ring";
}

double bus_factor(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce: return 2.0 * (ranks - 1.0) / ranks;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return (ranks - 1.0) / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
    case CollectiveKind::other: break;
  }
  return 1.0;
}

CollectiveTime collective_time(const NetworkParameters& parameters, CollectiveKind kind,
                               const CollectiveGroup& group, double message_bytes, double bus_gbs,
                               double latency_scale) {
  const double bus_s = message_bytes * bus_factor(kind, group.ranks) / (bus_gbs * 1e9);
  if (between_pairs(kind)) return pairs_time(parameters, kind, group, bus_s, latency_scale);
  const double rounds = kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
  const Hops ring{rounds * (group.ranks - group.nodes), rounds * (group.nodes - 1.0)};
  const CollectiveTime by_ring =
      along(parameters, kind, group, ring, CollectiveAlgorithm::ring, bus_s, latency_scale);
  if (kind != CollectiveKind::all_reduce || group.nodes <= 1.0) return by_ring;
  // A chain inside each node, a binary tree between nodes, up and down.
  const Hops tree{2.0 * (group.ranks / group.nodes - 1.0), 2.0 * std::log2(group.nodes)};
  const CollectiveTime by_tree =
      along(parameters, kind, group, tree, CollectiveAlgorithm::tree, bus_s, latency_scale);
  return by_tree.time_s < by_ring.time_s ? by_tree : by_ring;
}

CollectiveTime collective_time(const ClusterSpec& cluster, const Collective& collective,
                               const NetworkParameters& parameters) {
  check_fits(cluster, collective);
  const Placement place = placed(cluster, collective);
  const auto [group, bus_gbs] = place;
  CollectiveTime time = collective_time(parameters, collective.kind, group,
                                        collective.message_bytes, bus_gbs, cluster.latency_scale);
  const bool whole_node = group.nodes <= 1.0 && collective.group_size == cluster.gpus_per_node;
  if (!cluster.in_switch_gbs || !whole_node || collective.kind != CollectiveKind::all_reduce)
    return time;
  const CollectiveTime in_switch =
      collective_time(parameters, collective.kind, group, collective.message_bytes,
                      *cluster.in_switch_gbs, cluster.latency_scale);
  if (in_switch.time_s >= time.time_s) return time;
  return {in_switch.time_s, CollectiveAlgorithm::in_switch, in_switch.low_latency};
}

}  // namespace rubato
