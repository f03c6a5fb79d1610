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

// What messages pass, piece by piece.
struct Pipeline {
  double latency_s = 0.0;
  double ramp_s = 0.0, full_s = 0.0;  // as in LinkParameters, of the whole way
};

void add_inside(Pipeline& way, const LinkParameters& link, const CollectiveGroup& group) {
  const double slower =
      is_nvlink(group.inside) ? NetworkParameters::nvlink_gbs / group.inside_gbs : 1.0;
  way.ramp_s += link.ramp_s * slower;
  way.full_s += link.full_s * slower;
}

// Smaller pieces fill a pipeline sooner but cost more: the best choice leaves 2 sqrt(ramp b) to
// wait for. Pieces end at the size of buffers, and with it the wait.
double time_through(const Pipeline& way, double bus_s) {
  const double fill_s = 2.0 * std::sqrt(way.ramp_s * bus_s);
  const double bounded_s = fill_s > 0.0 ? fill_s / std::hypot(1.0, fill_s / way.full_s) : 0.0;
  return way.latency_s + bus_s + bounded_s;
}

bool between_pairs(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
}

CollectiveTime pairs_time(const NetworkParameters& p, CollectiveKind kind,
                          const CollectiveGroup& group, double bus_s) {
  const LinkParameters& inside = p.of(group.inside);
  const LinkParameters& between = p.of(group.between);
  const bool one_node = group.nodes <= 1.0, send = kind == CollectiveKind::send_recv;
  Pipeline way;
  if (one_node && send) {
    way.latency_s = p.p2p_start_s * group.inside_latency;  // nothing is handed on
  } else {
    const double per_node = group.ranks / group.nodes;
    const Hops peers = send ? Hops{0.0, 1.0} : Hops{per_node - 1.0, group.ranks - per_node};
    way.latency_s = (p.pair_start_s + peers.inside * inside.peer_s) * group.inside_latency +
                    peers.between * between.peer_s * group.between_latency;
    if (one_node) {
      add_inside(way, inside, group);
    } else {
      way.ramp_s = between.pair_ramp_s;
      way.full_s = between.pair_full_s;
    }
  }
  return {time_through(way, bus_s), CollectiveAlgorithm::pairs};
}

// The share of hops' latency that one message waits for. Broadcast and reduce are chains, which
// hand on the next message meanwhile.
double waited_share(const NetworkParameters& p, CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ? p.chain_share : 1.0;
}

CollectiveTime along(const NetworkParameters& p, CollectiveKind kind, const CollectiveGroup& group,
                     const Hops& hops, CollectiveAlgorithm algorithm, double bus_s) {
  const LinkParameters& inside = p.of(group.inside);
  const LinkParameters& between = p.of(group.between);
  const double share = waited_share(p, kind);
  Pipeline way{.latency_s = p.start_s * group.inside_latency};
  if (hops.inside > 0.0) {
    way.latency_s += share * hops.inside * inside.hop_s * group.inside_latency;
    add_inside(way, inside, group);
  }
  if (hops.between > 0.0) {
    way.latency_s += share * hops.between * between.hop_s * group.between_latency;
    way.ramp_s += hops.between * between.ramp_s;
    way.full_s += hops.between * between.full_s;
  }
  return {time_through(way, bus_s), algorithm};
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
                            .inside = cluster.inside.kind,
                            .inside_gbs = cluster.inside.bus_gbs,
                            .inside_latency = cluster.inside.latency_scale},
                  .bus_gbs = cluster.inside.bus_gbs};
  if (place.group.nodes <= 1.0 || !cluster.between) return place;
  place.group.between = cluster.between->kind;
  place.group.between_latency = cluster.between->latency_scale;
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
                               const CollectiveGroup& group, double message_bytes, double bus_gbs) {
  const double bus_s = message_bytes * bus_factor(kind, group.ranks) / (bus_gbs * 1e9);
  if (between_pairs(kind)) return pairs_time(parameters, kind, group, bus_s);
  const double rounds = kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
  const Hops ring{rounds * (group.ranks - group.nodes), rounds * (group.nodes - 1.0)};
  const CollectiveTime by_ring =
      along(parameters, kind, group, ring, CollectiveAlgorithm::ring, bus_s);
  if (kind != CollectiveKind::all_reduce || group.nodes <= 1.0) return by_ring;
  // A chain inside each node, a binary tree between nodes, up and down.
  const Hops tree{2.0 * (group.ranks / group.nodes - 1.0), 2.0 * std::log2(group.nodes)};
  const CollectiveTime by_tree = along(parameters, kind, group, tree, CollectiveAlgorithm::tree,
                                       bus_s * parameters.tree_slowdown);
  return by_tree.time_s < by_ring.time_s ? by_tree : by_ring;
}

CollectiveTime collective_time(const ClusterSpec& cluster, const Collective& collective,
                               const NetworkParameters& parameters) {
  check_fits(cluster, collective);
  const auto [group, bus_gbs] = placed(cluster, collective);
  const auto at = [&, &there = group](double gbs) {
    return collective_time(parameters, collective.kind, there, collective.message_bytes, gbs);
  };
  const CollectiveTime time = at(bus_gbs);
  const bool whole_node = group.nodes <= 1.0 && collective.group_size == cluster.gpus_per_node;
  if (!cluster.in_switch_gbs || !whole_node || collective.kind != CollectiveKind::all_reduce)
    return time;
  const double in_switch_s = at(*cluster.in_switch_gbs).time_s;
  if (in_switch_s >= time.time_s) return time;
  return {in_switch_s, CollectiveAlgorithm::in_switch};
}

}  // namespace rubato
