#pragma once
// Constants of the network model: what NCCL's algorithms and protocols take on each kind of link,
// the same for all clusters. Fitted to measured tables (models/calibration/network_fit.hpp).

#include <array>
#include <string>
#include <string_view>

#include "models/network/cluster.hpp"

namespace rubato {

/// One kind of link. A path of h hops takes
///   h hop_s + b max(low_latency_slowdown h^low_latency_growth, 1)  in the low-latency protocols
///   h hop_s + simple_s h^simple_growth + b                         in the Simple protocol,
/// where b is the time at full bus bandwidth. Low-latency protocols are LL and LL128. On a path
/// over two kinds of links the terms with h of both are added.
struct LinkParameters {
  double hop_s = 0.0;                 ///< > 0
  double low_latency_slowdown = 0.0;  ///< > 0
  double low_latency_growth = 0.0;    ///< of the slowdown with hops
  double simple_s = 0.0;              ///< > 0
  double simple_growth = 0.0;         ///< of simple_s with hops
  double peer_s = 0.0;                ///< per peer of an all-to-all, or of a send, > 0

  friend bool operator==(const LinkParameters&, const LinkParameters&) = default;
};

/// The constants of all links.
struct NetworkParameters {
  double launch_s = 0.0;       ///< time any collective takes to begin, > 0
  double tree_slowdown = 1.0;  ///< factor on b for the tree algorithm in the Simple protocol, > 0
  double chain_share = 1.0;    ///< share of hop_s that a message of a broadcast or reduce waits for
  double peer_slowdown = 1.0;  ///< factor on b, at least 1, between peers in low-latency protocols
  double peer_simple_s = 0.0;  ///< time added between peers in the Simple protocol, > 0
  std::array<LinkParameters, link_kinds> links;
  std::string source;

  [[nodiscard]] const LinkParameters& of(LinkKind kind) const noexcept {
    return links[static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const NetworkParameters&, const NetworkParameters&) = default;
};

/// The shipped constants.
[[nodiscard]] const NetworkParameters& network_parameters();

/// @throws DataError naming the first wrong or missing entry
[[nodiscard]] NetworkParameters parse_network_parameters(std::string_view json_text,
                                                         std::string name_for_messages);
[[nodiscard]] std::string to_json(const NetworkParameters& parameters);

}  // namespace rubato
