#pragma once
// A cluster: equal nodes of equal GPUs, the links inside a node and those between nodes. Read from
// strict JSON in which every link names the source of its numbers. docs/network.md.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace rubato {

class JsonNode;

/// What messages travel on. nvlink: also AMD's Infinity Fabric; nvlink_older: NVLink by an older
/// library (NCCL 2.18 and its like); rdma: InfiniBand and RoCE with GPUDirect; libfabric:
/// Slingshot, EFA; tcp: sockets, also with GPUDirect-TCPX.
enum class LinkKind { nvlink, nvlink_older, pcie, rdma, libfabric, tcp };
inline constexpr std::size_t link_kinds = 6;
[[nodiscard]] std::string_view name_of(LinkKind value) noexcept;

/// Whether it connects nodes.
[[nodiscard]] bool between_nodes(LinkKind value) noexcept;

/// Whether it is NVLink, by whichever library.
[[nodiscard]] bool is_nvlink(LinkKind value) noexcept;

/// One kind of link, and what collectives reach on it.
struct Link {
  LinkKind kind = LinkKind::nvlink;
  double bus_gbs = 0.0;  ///< bus bandwidth of endless messages per GPU and direction, GB/s, > 0
  std::string source;    ///< where the numbers come from
  double latency_scale = 1.0;  ///< latencies: measured over the model's, > 0; 1 where unknown

  friend bool operator==(const Link&, const Link&) = default;
};

/// Equal nodes of equal GPUs.
struct ClusterSpec {
  static constexpr std::uint64_t schema = 1;

  std::string name;                     ///< "dgx-a100"
  std::string title;                    ///< "NVIDIA DGX A100, 8 x 200 Gb/s InfiniBand"
  std::uint32_t gpus_per_node = 1;      ///< >= 1
  std::uint32_t nodes = 1;              ///< at most so many, >= 1
  Link inside;                          ///< between GPUs of a node
  std::optional<Link> between;          ///< between nodes, a GPU's share; nothing: one node
  std::optional<double> in_switch_gbs;  ///< bus bandwidth of all-reduces summed in the switch
                                        ///< (NVLS) by all GPUs of a node; nothing: it cannot

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;

  [[nodiscard]] std::uint64_t gpus() const noexcept { return std::uint64_t{gpus_per_node} * nodes; }
};

/// Reads and checks an object of that form. @throws DataError naming the first wrong entry
[[nodiscard]] ClusterSpec read_cluster(const JsonNode& node);
[[nodiscard]] nlohmann::ordered_json cluster_json(const ClusterSpec& cluster);

/// A shipped cluster by name, or a file. @throws UsageError (unknown name, with the nearest),
/// IoError, DataError
[[nodiscard]] ClusterSpec load_cluster(std::string_view name_or_path);
[[nodiscard]] std::vector<std::string> shipped_clusters();

}  // namespace rubato
