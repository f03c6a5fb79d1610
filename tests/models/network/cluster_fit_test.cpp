// A cluster from the collectives of a capture.

#include "models/network/cluster_fit.hpp"

#include <gtest/gtest.h>

#include "models/network/collective_time.hpp"

namespace rubato {
namespace {

ClusterSpec true_cluster() {
  ClusterSpec cluster = load_cluster("dgx-a100");
  cluster.inside.bus_gbs = 77.0;
  cluster.inside.latency_scale = 1.7;
  return cluster;
}

std::vector<ObservedCollective> observed_on(const ClusterSpec& cluster,
                                            const std::vector<Collective>& messages) {
  std::vector<ObservedCollective> observed;
  for (const Collective& message : messages)
    observed.push_back(
        {message, 3, collective_time(cluster, message, network_parameters()).time_s});
  return observed;
}

const std::vector<Collective> all_sizes{{CollectiveKind::all_reduce, 1e4, 8},
                                        {CollectiveKind::all_reduce, 1e6, 8},
                                        {CollectiveKind::all_reduce, 2.5e7, 8},
                                        {CollectiveKind::all_gather, 1e8, 8},
                                        {CollectiveKind::all_to_all, 3e6, 4}};

TEST(ClusterFit, FindsBandwidthAndLatencyAgain) {
  const ClusterSpec truth = true_cluster();
  const ClusterFit fit =
      fit_cluster(load_cluster("dgx-a100"), observed_on(truth, all_sizes), network_parameters());
  ASSERT_TRUE(fit.inside_gbs && fit.inside_latency);
  EXPECT_NEAR(fit.inside_gbs->value / 77.0, 1.0, 0.01);
  EXPECT_NEAR(fit.inside_latency->value / 1.7, 1.0, 0.01);
  EXPECT_LE(fit.inside_gbs->low, fit.inside_gbs->value);
  EXPECT_GE(fit.inside_gbs->high, fit.inside_gbs->value);
  // All messages stay inside a node: the network between nodes is the frame's.
  EXPECT_FALSE(fit.between_gbs);
  EXPECT_EQ(fit.cluster.between, load_cluster("dgx-a100").between);
  EXPECT_DOUBLE_EQ(fit.cluster.inside.bus_gbs, fit.inside_gbs->value);
}

TEST(ClusterFit, FindsTheNetworkBetweenNodesAgain) {
  ClusterSpec truth = true_cluster();
  truth.between->bus_gbs = 3.0;
  std::vector<Collective> messages = all_sizes;
  messages.push_back({CollectiveKind::all_reduce, 1e8, 32});
  messages.push_back({CollectiveKind::reduce_scatter, 1e9, 64});
  const ClusterFit fit =
      fit_cluster(load_cluster("dgx-a100"), observed_on(truth, messages), network_parameters());
  ASSERT_TRUE(fit.inside_gbs && fit.between_gbs && fit.inside_latency);
  EXPECT_NEAR(fit.inside_gbs->value / 77.0, 1.0, 0.02);
  EXPECT_NEAR(fit.between_gbs->value / 3.0, 1.0, 0.02);
  EXPECT_NEAR(fit.inside_latency->value / 1.7, 1.0, 0.02);
}

// Each link's latencies have their own factor, told by short messages that pass it.
TEST(ClusterFit, FindsTheLatencyBetweenNodesAgain) {
  ClusterSpec truth = true_cluster();
  truth.between->bus_gbs = 3.0;
  truth.between->latency_scale = 2.5;
  std::vector<Collective> messages = all_sizes;
  for (const double bytes : {1e3, 1e5, 1e8, 1e9})
    messages.push_back({CollectiveKind::all_reduce, bytes, 32});
  const ClusterFit fit =
      fit_cluster(load_cluster("dgx-a100"), observed_on(truth, messages), network_parameters());
  ASSERT_TRUE(fit.inside_latency && fit.between_latency);
  EXPECT_NEAR(fit.inside_latency->value / 1.7, 1.0, 0.02);
  EXPECT_NEAR(fit.between_latency->value / 2.5, 1.0, 0.02);
}

// Short messages say nothing of the bandwidth, long ones nothing of the latency.
TEST(ClusterFit, KeepsTheFrameWhereNoMessageTells) {
  const ClusterSpec frame = load_cluster("dgx-a100"), truth = true_cluster();
  const ClusterFit brief = fit_cluster(frame,
                                       observed_on(truth, {{CollectiveKind::all_reduce, 64.0, 8},
                                                           {CollectiveKind::all_reduce, 256.0, 8}}),
                                       network_parameters());
  EXPECT_FALSE(brief.inside_gbs);
  EXPECT_EQ(brief.cluster.inside.bus_gbs, frame.inside.bus_gbs);
  ASSERT_TRUE(brief.inside_latency);
  EXPECT_NEAR(brief.inside_latency->value / 1.7, 1.0, 0.01);
  const ClusterFit lengthy = fit_cluster(
      frame,
      observed_on(truth,
                  {{CollectiveKind::all_reduce, 1e10, 8}, {CollectiveKind::all_reduce, 2e10, 8}}),
      network_parameters());
  EXPECT_FALSE(lengthy.inside_latency);
  EXPECT_EQ(lengthy.cluster.inside.latency_scale, frame.inside.latency_scale);
  ASSERT_TRUE(lengthy.inside_gbs);
  EXPECT_NEAR(lengthy.inside_gbs->value / 77.0, 1.0, 0.02);
}

// One message fits any bandwidth with some latency: nothing is told.
TEST(ClusterFit, OneMessageTellsNothing) {
  const ClusterSpec frame = load_cluster("hgx-h100");
  const ClusterFit fit =
      fit_cluster(frame, observed_on(true_cluster(), {{CollectiveKind::all_reduce, 4e6, 8}}),
                  network_parameters());
  EXPECT_FALSE(fit.inside_gbs || fit.between_gbs || fit.inside_latency || fit.between_latency);
  EXPECT_EQ(fit.cluster, frame);
}

// A launch that something else held up does not move the fit; without it nothing changes.
TEST(ClusterFit, AnOutlierMovesLittle) {
  std::vector<ObservedCollective> observed = observed_on(true_cluster(), all_sizes);
  observed.push_back({{CollectiveKind::all_gather, 5e7, 8}, 1, 1.0});
  const ClusterFit fit = fit_cluster(load_cluster("dgx-a100"), observed, network_parameters());
  ASSERT_TRUE(fit.inside_gbs);
  EXPECT_NEAR(fit.inside_gbs->value / 77.0, 1.0, 0.1);
}

// Every eighth rank: their GPUs are in nodes of their own.
TEST(ClusterFit, RanksOfAGroupTellHowFarApartTheyAre) {
  Capture capture;
  Kernel reduce;
  reduce.name = "reduce";
  capture.kernels = {reduce};
  capture.groups.push_back({"dp", "", 4, {3, 11, 19, 27}});
  CapturedCollective one;
  one.kind = CollectiveKind::all_reduce;
  one.group = 0;
  one.in_bytes = one.out_bytes = 1000;
  capture.collectives.push_back(one);
  CapturedLaunch launch;
  launch.kernel = KernelId{0};
  launch.duration_ns = 100;
  launch.collective = 0;
  capture.launches.push_back(launch);
  const std::vector<ObservedCollective> observed = observed_collectives({&capture, 1});
  ASSERT_EQ(observed.size(), 1U);
  EXPECT_EQ(observed[0].message, (Collective{CollectiveKind::all_reduce, 1000.0, 4, 8}));
}

// Of one rank the shortest launch of each message; what has no message is left out.
TEST(ClusterFit, OneRankGivesTheShortestLaunches) {
  Capture capture;
  Kernel reduce;
  reduce.name = "reduce";
  reduce.kind = KernelClass::communication;
  reduce.collective = Collective{CollectiveKind::all_reduce, 1e6, 2};
  Kernel other = reduce;
  other.name = "barrier";
  other.collective = std::nullopt;
  capture.kernels = {reduce, other};
  const auto add_launch = [&](KernelId kernel, std::int64_t duration_ns) {
    CapturedLaunch launch;
    launch.kernel = kernel;
    launch.duration_ns = duration_ns;
    capture.launches.push_back(launch);
  };
  for (const std::int64_t duration_ns : {900, 300, 500, 0}) add_launch(KernelId{0}, duration_ns);
  add_launch(KernelId{1}, 100);
  // What a launch itself says counts before its kernel.
  capture.groups.emplace_back();
  capture.groups.back().size = 8;
  CapturedCollective gather;
  gather.kind = CollectiveKind::all_gather;
  gather.group = 0;
  gather.in_bytes = 1000;
  gather.out_bytes = 8000;
  capture.collectives.push_back(gather);
  add_launch(KernelId{0}, 70);
  capture.launches.back().collective = 0;
  const std::vector<ObservedCollective> observed = observed_collectives({&capture, 1});
  ASSERT_EQ(observed.size(), 2U);
  EXPECT_EQ(observed[1].message, (Collective{CollectiveKind::all_gather, 8000.0, 8}));
  EXPECT_DOUBLE_EQ(observed[1].time_s, 70e-9);
  EXPECT_EQ(observed[0].launches, 3U);
  EXPECT_DOUBLE_EQ(observed[0].time_s, 300e-9);
  EXPECT_EQ(observed[0].message, *reduce.collective);
}

}  // namespace
}  // namespace rubato
