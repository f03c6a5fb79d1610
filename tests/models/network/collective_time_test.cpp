#include "models/network/collective_time.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/json.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

constexpr double gb = 1e9;

// Nothing takes time but bytes: what is left are the closed forms.
NetworkParameters only_bandwidth() {
  NetworkParameters parameters = network_parameters();
  constexpr double nothing = 1e-30;
  parameters.launch_s = nothing;
  parameters.tree_slowdown = 1.5;
  parameters.peer_simple_s = nothing;
  parameters.peer_slowdown = 10.0;
  for (LinkParameters& link : parameters.links) {
    link = {.hop_s = nothing,
            .low_latency_slowdown = 10.0,
            .low_latency_growth = 0.0,
            .simple_s = nothing,
            .simple_growth = 0.0,
            .peer_s = nothing};
  }
  return parameters;
}

ClusterSpec two_by_four() {
  return {.name = "two-by-four",
          .title = "made up",
          .gpus_per_node = 4,
          .nodes = 2,
          .inside = {LinkKind::nvlink, 100.0, "made up"},
          .between = Link{LinkKind::rdma, 10.0, "made up"},
          .in_switch_gbs = {}};
}

double bandwidth_time_s(const ClusterSpec& cluster, const Collective& collective) {
  return collective_time(cluster, collective, only_bandwidth()).time_s;
}

TEST(CollectiveTime, RingMovesTwiceAllButOneOfTheRanksShares) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 8.0), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_gather, 8.0), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::reduce_scatter, 4.0), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::broadcast, 8.0), 1.0);
  // 1 GB over four ranks at 100 GB/s: 1.5 GB sent by each.
  EXPECT_NEAR(bandwidth_time_s(two_by_four(), {CollectiveKind::all_reduce, gb, 4, 1}), 1.5 / 100.0,
              1e-9);
  EXPECT_NEAR(bandwidth_time_s(two_by_four(), {CollectiveKind::all_gather, gb, 4, 1}), 0.75 / 100.0,
              1e-9);
}

// Between nodes a ring uses the links of all GPUs of a node, a pair only its own.
TEST(CollectiveTime, NodesShareTheirLinksByPlacement) {
  const ClusterSpec cluster = two_by_four();
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::all_reduce, gb, 8, 1}), 1.75 / 40.0, 1e-9);
  // Ranks four apart: one on each node, each with its own link.
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::all_reduce, gb, 2, 4}), 1.0 / 10.0, 1e-9);
  // Two apart: two on each node.
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::all_reduce, gb, 4, 2}), 1.5 / 20.0, 1e-9);
  // Of an all-to-all four of seven parts leave the node: 4/8 GB at 10 GB/s.
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::all_to_all, gb, 8, 1}), 0.5 / 10.0, 1e-9);
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::send_recv, gb, 2, 4}), 1.0 / 10.0, 1e-9);
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::send_recv, gb, 2, 1}), 1.0 / 100.0, 1e-9);
}

TEST(CollectiveTime, SumsInTheSwitchWhereStatedAndTheWholeNodeTakesPart) {
  ClusterSpec cluster = two_by_four();
  cluster.in_switch_gbs = 150.0;
  const auto algorithm = [&](const Collective& collective) {
    return collective_time(cluster, collective, network_parameters()).algorithm;
  };
  EXPECT_EQ(algorithm({CollectiveKind::all_reduce, gb, 4, 1}), CollectiveAlgorithm::in_switch);
  EXPECT_EQ(algorithm({CollectiveKind::all_reduce, gb, 2, 1}), CollectiveAlgorithm::ring);
  EXPECT_EQ(algorithm({CollectiveKind::all_gather, gb, 4, 1}), CollectiveAlgorithm::ring);
  EXPECT_NEAR(bandwidth_time_s(cluster, {CollectiveKind::all_reduce, gb, 4, 1}), 1.5 / 150.0, 1e-9);
}

TEST(CollectiveTime, TreesForShortMessagesOverManyNodesRingsForLongOnes) {
  const ClusterSpec cluster = load_cluster("dgx-a100");
  const auto at = [&](double bytes) {
    return collective_time(cluster, {CollectiveKind::all_reduce, bytes, 1024, 1},
                           network_parameters());
  };
  EXPECT_EQ(at(1e3).algorithm, CollectiveAlgorithm::tree);
  EXPECT_TRUE(at(1e3).low_latency);
  EXPECT_EQ(at(1e10).algorithm, CollectiveAlgorithm::ring);
  EXPECT_FALSE(at(1e10).low_latency);
}

// Hop by hop: launch, 7 hops at 2 us, then bytes at ten times their time or 5 us and their time.
TEST(CollectiveTime, TakesTheFasterProtocol) {
  NetworkParameters parameters = only_bandwidth();
  parameters.launch_s = 1e-6;
  LinkParameters& link = parameters.links[static_cast<std::size_t>(LinkKind::nvlink)];
  link.hop_s = 2e-6;
  link.simple_s = 5e-6;
  const CollectiveGroup group{.ranks = 8.0, .nodes = 1.0, .inside = LinkKind::nvlink};
  const auto gather = [&](double bytes, double scale) {
    return collective_time(parameters, CollectiveKind::all_gather, group, bytes, 0.875, scale);
  };
  EXPECT_NEAR(gather(100.0, 1.0).time_s, 15e-6 + 10.0 * 100e-9, 1e-12);
  EXPECT_TRUE(gather(100.0, 1.0).low_latency);
  EXPECT_NEAR(gather(1e6, 1.0).time_s, 15e-6 + 5e-6 + 1e-3, 1e-12);
  EXPECT_NEAR(gather(1e6, 4.0).time_s, 60e-6 + 10e-6 + 1e-3, 1e-12);
}

TEST(CollectiveTime, RefusesMoreRanksThanTheClusterHas) {
  expect_error<UsageError>(
      [] {
        return bandwidth_time_s(two_by_four(), {CollectiveKind::all_reduce, gb, 9, 1});
      },
      "a collective of 9 ranks, 1 apart, needs 9 GPUs; two-by-four has 8 (2 x 4)",
      "lower the parallel degrees");
  expect_error<UsageError>(
      [] {
        return bandwidth_time_s(two_by_four(), {CollectiveKind::all_reduce, gb, 3, 4});
      },
      "a collective of 3 ranks, 4 apart, needs 9 GPUs");
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  expect_error<UsageError>(
      [] {
        return bandwidth_time_s(two_by_four(), {CollectiveKind::all_reduce, gb, most, most});
      },
      "two-by-four has 8");
}

// Longer messages never take less time, whatever the group.
RC_GTEST_PROP(CollectiveTime, GrowsWithTheMessage, ()) {
  const std::vector<std::string> names = shipped_clusters();
  const ClusterSpec cluster = load_cluster(*rc::gen::elementOf(names));
  const auto ranks =
      *rc::gen::inRange<std::uint32_t>(2, static_cast<std::uint32_t>(cluster.gpus() + 1));
  const auto kind = *rc::gen::element(CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::all_to_all, CollectiveKind::send_recv,
                                      CollectiveKind::broadcast);
  double last = 0.0;
  for (double bytes = 64.0; bytes < 1e11; bytes *= 2.0) {
    const double time =
        collective_time(cluster, {kind, bytes, ranks, 1}, network_parameters()).time_s;
    RC_ASSERT(std::isfinite(time));
    RC_ASSERT(time > last);
    last = time;
  }
}

TEST(Cluster, EveryShippedOneIsReadBackAsItWas) {
  for (const std::string& name : shipped_clusters()) {
    const ClusterSpec cluster = load_cluster(name);
    EXPECT_EQ(cluster.name, name);
    const JsonDocument again = JsonDocument::parse(cluster_json(cluster).dump(), name);
    EXPECT_EQ(read_cluster(again.root()), cluster);
  }
}

void fails(const std::string& text, std::string_view what) {
  expect_error<DataError>([&] { return read_cluster(JsonDocument::parse(text, "c.json").root()); },
                          what);
}

TEST(Cluster, RefusesWhatCannotBe) {
  const std::string inside = R"("inside": {"kind": "nvlink", "bus_gbs": 200, "source": "s"})";
  const std::string head = R"({"schema": 1, "name": "n", "title": "t", "gpus_per_node": 8, )";
  fails(head + R"("nodes": 2, )" + inside + "}",
        "nodes: is more than 1, but 'between' does not say what connects them");
  fails(head + R"("nodes": 0, )" + inside + "}", "nodes: found 0; expected a whole number from 1");
  fails(head + R"("nodes": 1, "inside": {"kind": "nvlnk", "bus_gbs": 1, "source": "s"}})",
        "'nvlnk' is not known; did you mean 'nvlink'?");
  fails(head + R"("nodes": 1, "inside": {"kind": "rdma", "bus_gbs": 1, "source": "s"}})",
        "'rdma' does not connect the GPUs of a node");
  fails(head + R"("nodes": 2, "between": {"kind": "pcie", "bus_gbs": 1, "source": "s"}, )" +
            inside + "}",
        "'pcie' does not connect nodes");
  fails(head + R"("nodes": 1, "inside": {"kind": "nvlink", "bus_gbs": 0, "source": "s"}})",
        "bus_gbs: found 0");
  expect_error<UsageError>([] { return load_cluster("dgx-a10"); },
                           "there is no cluster 'dgx-a10'; did you mean 'dgx-a100'?");
}

}  // namespace
}  // namespace rubato
