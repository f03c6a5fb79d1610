#pragma once
// Constants of the network model: what handing on messages takes on each kind of link, the same for
// all clusters. Fitted to measured tables (models/calibration/network_fit.hpp).

#include <array>
#include <string>
#include <string_view>

#include "models/network/cluster.hpp"

namespace rubato {

/// One kind of link. Hops are the links that a message passes one after the other. Inside nodes
/// ramp_s and full_s hold for any number of hops and are those of NVLink at `nvlink_gbs`: faster
/// links hand on faster. Between nodes they hold for one hop.
struct LinkParameters {
  double hop_s = 0.0;        ///< per hop, > 0
  double ramp_s = 0.0;       ///< what handing on one piece costs, > 0
  double full_s = 0.0;       ///< most that filling the pipeline costs, > 0
  double peer_s = 0.0;       ///< per peer of an all-to-all, > 0
  double pair_ramp_s = 0.0;  ///< as ramp_s between peers on other nodes; 0 inside nodes
  double pair_full_s = 0.0;  ///< as full_s between peers on other nodes; 0 inside nodes

  friend bool operator==(const LinkParameters&, const LinkParameters&) = default;
};

/// The constants of all links.
struct NetworkParameters {
  static constexpr double nvlink_gbs = 227.0;  ///< bus bandwidth of 8 A100

  double start_s = 0.0;        ///< time a ring or tree takes to begin, > 0
  double pair_start_s = 0.0;   ///< an all-to-all, or a send to another node, > 0
  double p2p_start_s = 0.0;    ///< a send inside a node, > 0
  double tree_slowdown = 1.0;  ///< factor on the time of the bytes for the tree algorithm, > 0
  double chain_share = 1.0;    ///< share of hop_s that a message of a broadcast or reduce waits for
  std::array<LinkParameters, link_kinds> links;
  std::string source;

  [[nodiscard]] const LinkParameters& of(LinkKind kind) const noexcept {
    return links[static_cast<std::size_t>(kind)];
  }
  friend bool operator==(const NetworkParameters&, const NetworkParameters&) = default;
};

/// Calls `visitor(link, name, value)` for each constant, always in the same order. `link` is the
/// name of its kind of link, empty for those of all links.
template <class Parameters, class Visitor>
void visit_constants(Parameters& p, const Visitor& visitor) {
  constexpr std::string_view all;
  visitor(all, "start_s", p.start_s);
  visitor(all, "pair_start_s", p.pair_start_s);
  visitor(all, "p2p_start_s", p.p2p_start_s);
  visitor(all, "tree_slowdown", p.tree_slowdown);
  visitor(all, "chain_share", p.chain_share);
  for (std::size_t i = 0; i < link_kinds; ++i) {
    const auto kind = static_cast<LinkKind>(i);
    const std::string_view name = name_of(kind);
    auto& link = p.links[i];
    visitor(name, "hop_s", link.hop_s);
    visitor(name, "ramp_s", link.ramp_s);
    visitor(name, "full_s", link.full_s);
    visitor(name, "peer_s", link.peer_s);
    if (!between_nodes(kind)) continue;
    visitor(name, "pair_ramp_s", link.pair_ramp_s);
    visitor(name, "pair_full_s", link.pair_full_s);
  }
}

/// The shipped constants.
[[nodiscard]] const NetworkParameters& network_parameters();

/// @throws DataError naming the first wrong or missing entry
[[nodiscard]] NetworkParameters parse_network_parameters(std::string_view json_text,
                                                         std::string name_for_messages);
[[nodiscard]] std::string to_json(const NetworkParameters& parameters);

}  // namespace rubato
