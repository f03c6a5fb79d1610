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

constexpr std::array<std::string_view, link_kinds> link_names{"nvlink", "nvlink_older", "pcie",
                                                              "rdma",   "libfabric",    "tcp"};

// What a file calls it: an older library is a key of its own.
std::string_view name_in_file(LinkKind kind) {
  return name_of(kind == LinkKind::nvlink_older ? LinkKind::nvlink : kind);
}

LinkKind read_kind(const JsonNode& node, bool between) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < link_kinds; ++i) {
    const auto kind = static_cast<LinkKind>(i);
    if (kind == LinkKind::nvlink_older) continue;
    if (name_of(kind) != node.text()) {
      known.emplace_back(name_of(kind));
      continue;
    }
    if (between_nodes(kind) != between) {
      node.fail(fmt::format("'{}' does not connect {}", node.text(),
                            between ? "nodes" : "the GPUs of a node"));
    }
    return kind;
  }
  node.fail(fmt::format("'{}' is not known{}", node.text(), did_you_mean(node.text(), known)));
}

Link read_link(const JsonNode& node, bool between) {
  node.expect_keys({"kind", "bus_gbs", "source"}, {"library", "latency_scale"});
  Link link{.kind = read_kind(node.at("kind"), between),
            .bus_gbs = node.at("bus_gbs").number(Range::positive),
            .source = node.at("source").text()};
  if (const auto library = node.find("library")) {
    if (library->text() != "newer" && library->text() != "older")
      library->fail(fmt::format("found '{}'; expected newer or older", library->text()));
    if (library->text() == "older") {
      if (!is_nvlink(link.kind)) library->fail("'older' is known of nvlink only");
      link.kind = LinkKind::nvlink_older;
    }
  }
  if (const auto scale = node.find("latency_scale"))
    link.latency_scale = scale->number(Range::positive);
  return link;
}

std::uint32_t read_number_of(const JsonNode& node) {
  constexpr std::uint64_t most = 1'000'000;
  const std::uint64_t value = node.count();
  if (value == 0 || value > most)
    node.fail(fmt::format("found {}; expected a whole number from 1 to {}", value, most));
  return static_cast<std::uint32_t>(value);
}

nlohmann::ordered_json link_json(const Link& link) {
  nlohmann::ordered_json json{
      {"kind", name_in_file(link.kind)}, {"bus_gbs", link.bus_gbs}, {"source", link.source}};
  if (link.kind == LinkKind::nvlink_older) json["library"] = "older";
  if (link.latency_scale != 1.0) json["latency_scale"] = link.latency_scale;
  return json;
}

ClusterSpec parse_cluster(std::string_view text, std::string name) {
  const JsonDocument document = JsonDocument::parse(text, std::move(name));
  return read_cluster(document.root());
}

}  // namespace

std::string_view name_of(LinkKind value) noexcept {
  return link_names[static_cast<std::size_t>(value)];
}

bool between_nodes(LinkKind value) noexcept { return !is_nvlink(value) && value != LinkKind::pcie; }

bool is_nvlink(LinkKind value) noexcept {
  return value == LinkKind::nvlink || value == LinkKind::nvlink_older;
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
  if (const auto scale = node.find("latency_scale")) {
    scale->fail("belongs to 'inside' and 'between', and no longer means the same",
                "leave it out, or fit it again with 'rubato network capture'");
  }
  return cluster;
}

nlohmann::ordered_json cluster_json(const ClusterSpec& cluster) {
  nlohmann::ordered_json json{
      {"schema", ClusterSpec::schema}, {"name", cluster.name},
      {"title", cluster.title},        {"gpus_per_node", cluster.gpus_per_node},
      {"nodes", cluster.nodes},        {"inside", link_json(cluster.inside)}};
  if (cluster.between) json["between"] = link_json(*cluster.between);
  if (cluster.in_switch_gbs) json["in_switch_gbs"] = *cluster.in_switch_gbs;
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
