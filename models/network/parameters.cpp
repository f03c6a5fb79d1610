#include "models/network/parameters.hpp"

#include <span>

#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "common/json.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_network_parameters();

NetworkParameters parse_network_parameters(std::string_view json_text,
                                           std::string name_for_messages) {
  const JsonDocument document = JsonDocument::parse(json_text, std::move(name_for_messages));
  const JsonNode root = document.root();
  root.expect_keys({"schema", "source", "launch_s", "tree_slowdown", "chain_share", "peer_slowdown",
                    "peer_simple_s", "links"});
  document.expect_schema(1);
  const auto number = [&root](const char* key) { return root.at(key).number(Range::positive); };
  NetworkParameters parameters{.launch_s = number("launch_s"),
                               .tree_slowdown = number("tree_slowdown"),
                               .chain_share = number("chain_share"),
                               .peer_slowdown = number("peer_slowdown"),
                               .peer_simple_s = number("peer_simple_s"),
                               .links = {},
                               .source = root.at("source").text()};
  const JsonNode links = root.at("links");
  links.expect_keys({"nvlink", "pcie", "rdma", "libfabric", "tcp"});
  for (std::size_t i = 0; i < link_kinds; ++i) {
    const JsonNode link = links.at(name_of(static_cast<LinkKind>(i)));
    link.expect_keys({"hop_s", "low_latency_slowdown", "low_latency_growth", "simple_s",
                      "simple_growth", "peer_s"});
    parameters.links[i] = {
        .hop_s = link.at("hop_s").number(Range::positive),
        .low_latency_slowdown = link.at("low_latency_slowdown").number(Range::positive),
        .low_latency_growth = link.at("low_latency_growth").number(),
        .simple_s = link.at("simple_s").number(Range::positive),
        .simple_growth = link.at("simple_growth").number(),
        .peer_s = link.at("peer_s").number(Range::positive)};
  }
  return parameters;
}

std::string to_json(const NetworkParameters& parameters) {
  nlohmann::ordered_json json{{"schema", 1},
                              {"source", parameters.source},
                              {"launch_s", parameters.launch_s},
                              {"tree_slowdown", parameters.tree_slowdown},
                              {"chain_share", parameters.chain_share},
                              {"peer_slowdown", parameters.peer_slowdown},
                              {"peer_simple_s", parameters.peer_simple_s}};
  for (std::size_t i = 0; i < link_kinds; ++i) {
    const LinkParameters& link = parameters.links[i];
    json["links"][std::string(name_of(static_cast<LinkKind>(i)))] = {
        {"hop_s", link.hop_s},
        {"low_latency_slowdown", link.low_latency_slowdown},
        {"low_latency_growth", link.low_latency_growth},
        {"simple_s", link.simple_s},
        {"simple_growth", link.simple_growth},
        {"peer_s", link.peer_s}};
  }
  return json.dump(2) + '\n';
}

const NetworkParameters& network_parameters() {
  static const NetworkParameters shipped = [] {
    const EmbeddedFile& file = embedded_network_parameters().front();
    return parse_network_parameters(file.text, std::string(file.name));
  }();
  return shipped;
}

}  // namespace rubato
