#include "models/network/cluster.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/suggest.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_clusters();

namespace {

constexpr std::array<std::string_view, link_kinds> link_names{"nvlink", "pcie", "rdma", "libfabric",
                                                              "tcp"};

Link read_link(const JsonNode& node, bool between) {
  node.expect_keys({"kind", "bus_gbs", "source"});
  const JsonNode kind = node.at("kind");
  const auto known = link_kind_from_name(kind.text());
  if (!known) {
    kind.fail(fmt::format(
        "'{}' is not known{}", kind.text(),
        did_you_mean(kind.text(), std::vector<std::string>(link_names.begin(), link_names.end()))));
  }
  if (between_nodes(*known) != between) {
    kind.fail(fmt::format("'{}' does not connect {}", kind.text(),
                          between ? "nodes" : "the GPUs of a node"));
  }
  return {.kind = *known,
          .bus_gbs = node.at("bus_gbs").number(Range::positive),
          .source = node.at("source").text()};
}

std::uint32_t read_number_of(const JsonNode& node) {
  constexpr std::uint64_t most = 1'000'000;
  const std::uint64_t value = node.count();
  if (value == 0 || value > most)
    node.fail(fmt::format("found {}; expected a whole number from 1 to {}", value, most));
  return static_cast<std::uint32_t>(value);
}

nlohmann::ordered_json link_json(const Link& link) {
  return {{"kind", name_of(link.kind)}, {"bus_gbs", link.bus_gbs}, {"source", link.source}};
}

ClusterSpec parse_cluster(std::string_view text, std::string name) {
  const JsonDocument document = JsonDocument::parse(text, std::move(name));
  return read_cluster(document.root());
}

}  // namespace

std::string_view name_of(LinkKind value) noexcept {
  return link_names[static_cast<std::size_t>(value)];
}

std::optional<LinkKind> link_kind_from_name(std::string_view name) noexcept {
  const auto found = std::ranges::find(link_names, name);
  if (found == link_names.end()) return std::nullopt;
  return static_cast<LinkKind>(found - link_names.begin());
}

bool between_nodes(LinkKind value) noexcept {
  return value != LinkKind::nvlink && value != LinkKind::pcie;
}

ClusterSpec read_cluster(const JsonNode& node) {
  node.expect_keys({"schema", "name", "title", "gpus_per_node", "nodes", "inside"},
                   {"between", "in_switch_gbs", "latency_scale"});
  node.at("schema").check_schema(ClusterSpec::schema);
  ClusterSpec cluster{.name = node.at("name").text(),
                      .title = node.at("title").text(),
                      .gpus_per_node = read_number_of(node.at("gpus_per_node")),
                      .nodes = read_number_of(node.at("nodes")),
                      .inside = read_link(node.at("inside"), false),
                      .between = {},
                      .in_switch_gbs = {}};
  if (const auto between = node.find("between")) cluster.between = read_link(*between, true);
  if (cluster.nodes > 1 && !cluster.between)
    node.at("nodes").fail("is more than 1, but 'between' does not say what connects them");
  if (const auto nvls = node.find("in_switch_gbs"))
    cluster.in_switch_gbs = nvls->number(Range::positive);
  if (const auto scale = node.find("latency_scale"))
    cluster.latency_scale = scale->number(Range::positive);
  return cluster;
}

nlohmann::ordered_json cluster_json(const ClusterSpec& cluster) {
  nlohmann::ordered_json json{
      {"schema", ClusterSpec::schema}, {"name", cluster.name},
      {"title", cluster.title},        {"gpus_per_node", cluster.gpus_per_node},
      {"nodes", cluster.nodes},        {"inside", link_json(cluster.inside)}};
  if (cluster.between) json["between"] = link_json(*cluster.between);
  if (cluster.in_switch_gbs) json["in_switch_gbs"] = *cluster.in_switch_gbs;
  if (cluster.latency_scale != 1.0) json["latency_scale"] = cluster.latency_scale;
  return json;
}

std::vector<std::string> shipped_clusters() { return names_of(embedded_clusters()); }

ClusterSpec load_cluster(std::string_view name_or_path) {
  const NamedText named =
      read_named(embedded_clusters(), name_or_path, "cluster",
                 "'rubato network list' has them; or give the path of a .json file");
  return parse_cluster(named.text, named.path.string());
}

}  // namespace rubato
