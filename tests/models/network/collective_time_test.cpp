#include "models/network/collective_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/json.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

constexpr double gb = 1e9;

// Nothing takes time but bytes: what is left are the closed forms.
NetworkParameters only_bandwidth() {
  NetworkParameters parameters;
  visit_constants(parameters,
                  [](std::string_view, std::string_view, double& value) { value = 1e-30; });
  parameters.tree_slowdown = 1.5;
  return parameters;
}

LinkParameters& link_of(NetworkParameters& parameters, LinkKind kind) {
  return parameters.links[static_cast<std::size_t>(kind)];
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
  EXPECT_EQ(at(1e11).algorithm, CollectiveAlgorithm::ring);
}

// A pipeline by brute force: p pieces pass it one behind the other, each costs its bytes' time and
// `ramp` to hand on. The best p leaves bytes' time and 2 sqrt(ramp b), less the one piece's worth
// that sqrt leaves out.
TEST(CollectiveTime, IsThatOfAPipelineCutIntoTheBestNumberOfPieces) {
  NetworkParameters parameters = only_bandwidth();
  constexpr double ramp_s = 5e-6;
  link_of(parameters, LinkKind::nvlink).ramp_s = ramp_s;
  link_of(parameters, LinkKind::nvlink).full_s = 1.0;
  const CollectiveGroup group{.ranks = 8.0, .nodes = 1.0};
  for (const double bus_s : {20e-6, 200e-6, 5e-3}) {
    const double bytes = bus_s / 0.875 * NetworkParameters::nvlink_gbs * 1e9;
    double best_s = 1.0;
    for (int pieces = 1; pieces < 1000; ++pieces)
      best_s = std::min(best_s, bus_s + bus_s / pieces + ramp_s * pieces);
    const double time_s = collective_time(parameters, CollectiveKind::all_gather, group, bytes,
                                          NetworkParameters::nvlink_gbs)
                              .time_s;
    EXPECT_NEAR(time_s / best_s, 1.0, 0.01) << bus_s;
  }
}

// Start, 7 hops at 2 us; 4 times the bandwidth hands on four times as fast; a full pipeline waits
// no longer.
TEST(CollectiveTime, AddsHopsAndTheWaitForAPipeline) {
  NetworkParameters parameters = only_bandwidth();
  parameters.start_s = 1e-6;
  LinkParameters& link = link_of(parameters, LinkKind::nvlink);
  link.hop_s = 2e-6;
  link.ramp_s = 4e-6;
  link.full_s = 30e-6;
  CollectiveGroup group{.ranks = 8.0, .nodes = 1.0};
  const auto gather = [&](double bus_s) {
    constexpr double bus_gbs = 100.0;
    return collective_time(parameters, CollectiveKind::all_gather, group,
                           bus_s / 0.875 * bus_gbs * 1e9, bus_gbs)
        .time_s;
  };
  EXPECT_NEAR(gather(1e-12), 15e-6, 1e-8);
  EXPECT_NEAR(gather(9e-6), 15e-6 + 9e-6 + 12e-6 / std::hypot(1.0, 12.0 / 30.0), 1e-12);
  EXPECT_NEAR(gather(1.0), 15e-6 + 1.0 + 30e-6, 1e-8);
  group.inside_gbs *= 4.0;
  EXPECT_NEAR(gather(9e-6), 15e-6 + 9e-6 + 6e-6 / std::hypot(1.0, 6.0 / 7.5), 1e-12);
  group.inside_latency = 3.0;
  EXPECT_NEAR(gather(1e-12), 45e-6, 1e-8);
}

// Two nodes of four: six hops inside and two between for an all-reduce by ring, each by its link's
// factor. The start belongs to those inside.
TEST(CollectiveTime, LatenciesOfEachLinkHaveTheirOwnFactor) {
  NetworkParameters parameters = only_bandwidth();
  parameters.start_s = 1e-6;
  link_of(parameters, LinkKind::nvlink).hop_s = 2e-6;
  link_of(parameters, LinkKind::rdma).hop_s = 10e-6;
  ClusterSpec cluster = two_by_four();
  const auto brief_us = [&] {
    return 1e6 *
           collective_time(cluster, {CollectiveKind::all_gather, 1e-3, 8, 1}, parameters).time_s;
  };
  EXPECT_NEAR(brief_us(), 1.0 + 6.0 * 2.0 + 1.0 * 10.0, 1e-6);
  cluster.inside.latency_scale = 2.0;
  EXPECT_NEAR(brief_us(), 2.0 * 13.0 + 10.0, 1e-6);
  cluster.between->latency_scale = 5.0;
  EXPECT_NEAR(brief_us(), 2.0 * 13.0 + 50.0, 1e-6);
}

// Inside a node nothing is handed on: a send takes its start and its bytes.
TEST(CollectiveTime, ASendInsideANodeTakesItsStartAndItsBytes) {
  const NetworkParameters& p = network_parameters();
  const ClusterSpec cluster = load_cluster("dgx-a100");
  for (const double bytes : {1e3, 1e6, 1e9}) {
    EXPECT_NEAR(collective_time(cluster, {CollectiveKind::send_recv, bytes, 2, 1}, p).time_s,
                p.p2p_start_s + bytes / (cluster.inside.bus_gbs * 1e9), 1e-12);
  }
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

constexpr std::array all_kinds{CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                               CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                               CollectiveKind::broadcast,      CollectiveKind::reduce,
                               CollectiveKind::send_recv};

// Of every shipped cluster and collective: longer messages take longer; nothing is faster than the
// links carry its bytes, or than it begins.
TEST(CollectiveTime, GrowsWithTheMessageAndNeverBeatsItsBytes) {
  for (const std::string& name : shipped_clusters()) {
    const ClusterSpec cluster = load_cluster(name);
    const double fastest_gbs =
        std::max(cluster.inside.bus_gbs, cluster.in_switch_gbs.value_or(0.0));
    for (const CollectiveKind kind : all_kinds) {
      for (std::uint32_t ranks = 2; ranks <= std::min<std::uint64_t>(cluster.gpus(), 1024);
           ranks *= 2) {
        if (kind == CollectiveKind::send_recv && ranks > 2) break;
        double last = 1e-6;
        for (double bytes = 1.0; bytes < 1e12; bytes *= 2.0) {
          const double time =
              collective_time(cluster, {kind, bytes, ranks, 1}, network_parameters()).time_s;
          ASSERT_GT(time, last) << name << ' ' << name_of(kind) << ' ' << ranks << ' ' << bytes;
          ASSERT_GE(time, bytes * bus_factor(kind, ranks) / (fastest_gbs * 1e9));
          last = time;
        }
        // Endless messages take their bytes' time, and no more.
        constexpr double endless = 1e15;
        const auto at = [&](double bytes) {
          return collective_time(cluster, {kind, bytes, ranks, 1}, network_parameters()).time_s;
        };
        ASSERT_NEAR(at(2.0 * endless) / at(endless), 2.0, 1e-3);
      }
    }
  }
}

// With every rank more bytes are sent and more links passed, as long as nodes are filled one by
// one.
TEST(CollectiveTime, GrowsWithTheRanks) {
  for (const std::string& name : shipped_clusters()) {
    ClusterSpec cluster = load_cluster(name);
    cluster.in_switch_gbs.reset();
    for (const CollectiveKind kind : all_kinds) {
      if (kind == CollectiveKind::send_recv) continue;
      for (const double bytes : {1e2, 1e5, 1e7, 1e9}) {
        double last = 0.0;
        for (std::uint32_t ranks = 2; ranks <= std::min<std::uint64_t>(cluster.gpus(), 512);
             ranks += ranks < cluster.gpus_per_node ? 1 : cluster.gpus_per_node) {
          const double time =
              collective_time(cluster, {kind, bytes, ranks, 1}, network_parameters()).time_s;
          ASSERT_GT(time, last) << name << ' ' << name_of(kind) << ' ' << bytes << ' ' << ranks;
          last = time;
        }
      }
    }
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

// Constants of an older library hold where the file says so, and only there.
TEST(Cluster, AnOlderLibraryIsNamedInTheFile) {
  EXPECT_EQ(load_cluster("dgx-a100").inside.kind, LinkKind::nvlink);
  const ClusterSpec polaris = load_cluster("polaris");
  EXPECT_EQ(polaris.inside.kind, LinkKind::nvlink_older);
  EXPECT_EQ(cluster_json(polaris)["inside"]["kind"], "nvlink");
  EXPECT_EQ(cluster_json(polaris)["inside"]["library"], "older");
}

TEST(NetworkParameters, AreReadBackAsTheyWere) {
  const NetworkParameters& shipped = network_parameters();
  const std::string text = to_json(shipped);
  EXPECT_EQ(parse_network_parameters(text, "n.json"), shipped);
  std::string without = text;
  without.replace(without.find("ramp_s"), 6, "rump_s");
  expect_error<DataError>([&] { return parse_network_parameters(without, "n.json"); }, "ramp_s");
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
  const auto inside_with = [&](const std::string& more) {
    return head + R"("nodes": 1, "inside": {"kind": "pcie", "bus_gbs": 1, "source": "s", )" + more +
           "}}";
  };
  fails(inside_with(R"("library": "older")"), "inside.library: 'older' is known of nvlink only");
  fails(inside_with(R"("library": "old")"), "found 'old'; expected newer or older");
  fails(inside_with(R"("latency_scale": 0)"), "latency_scale: found 0");
  fails(head + R"("nodes": 1, "latency_scale": 2, )" + inside + "}",
        "latency_scale: belongs to 'inside' and 'between'");
  fails(head + R"("nodes": 1, "inside": {"kind": "nvlink_older", "bus_gbs": 1, "source": "s"}})",
        "'nvlink_older' is not known");
  expect_error<UsageError>([] { return load_cluster("dgx-a10"); },
                           "there is no cluster 'dgx-a10'; did you mean 'dgx-a100'?");
}

}  // namespace
}  // namespace rubato
