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
  root.expect_keys({"schema", "source", "start_s", "pair_start_s", "p2p_start_s", "tree_slowdown",
                    "chain_share", "links"});
  document.expect_schema(2);
  const JsonNode links = root.at("links");
  links.expect_keys({"nvlink", "nvlink_older", "pcie", "rdma", "libfabric", "tcp"});
  for (std::size_t i = 0; i < link_kinds; ++i) {
    const auto kind = static_cast<LinkKind>(i);
    if (between_nodes(kind)) {
      links.at(name_of(kind))
          .expect_keys({"hop_s", "ramp_s", "full_s", "peer_s", "pair_ramp_s", "pair_full_s"});
    } else {
      links.at(name_of(kind)).expect_keys({"hop_s", "ramp_s", "full_s", "peer_s"});
    }
  }
  NetworkParameters parameters;
  visit_constants(parameters, [&](std::string_view link, std::string_view name, double& value) {
    value = (link.empty() ? root : links.at(link)).at(name).number(Range::positive);
  });
  parameters.source = root.at("source").text();
  return parameters;
}

std::string to_json(const NetworkParameters& parameters) {
  nlohmann::ordered_json json{{"schema", 2}, {"source", parameters.source}};
  visit_constants(parameters, [&](std::string_view link, std::string_view name, double value) {
    auto& place = link.empty() ? json : json["links"][std::string(link)];
    place[std::string(name)] = value;
  });
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
