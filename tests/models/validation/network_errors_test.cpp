#include "models/validation/network_errors.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/calibration/network_fit.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

std::vector<CollectiveSeries> measured_collectives() {
  return read_collective_series(source_dir() / "models/data/measured/nccl_tests/collectives.csv");
}

const NetworkErrors& group(const std::vector<NetworkErrors>& errors, const std::string& name) {
  return *std::ranges::find(errors, name, &NetworkErrors::group);
}

// docs/network.md: the shipped constants are what the shipped table gives.
TEST(NetworkFit, ShippedConstantsComeFromTheShippedTable) {
  const NetworkParameters again = fit_network(measured_collectives());
  const NetworkParameters& shipped = network_parameters();
  constexpr double as_printed = 0.02;  // where a step gains too little depends on the compiler
  EXPECT_NEAR(again.launch_s / shipped.launch_s, 1.0, as_printed);
  for (std::size_t i = 0; i < link_kinds; ++i) {
    EXPECT_NEAR(again.links[i].hop_s / shipped.links[i].hop_s, 1.0, as_printed) << i;
    EXPECT_NEAR(again.links[i].simple_s / shipped.links[i].simple_s, 1.0, as_printed) << i;
  }
}

// The goal: mean error of systems that were left out at most 15 %, none above 30 %, of messages
// above 1 MiB and with the peak bandwidth known.
TEST(NetworkErrors, OfSystemsLeftOutStayWithinTheGoal) {
  const std::vector<CollectiveSeries> series = measured_collectives();
  const auto errors = network_errors(predict_left_out(series, KnownOfSystem::peak));
  EXPECT_LT(group(errors, "all").large.mean, 15.0);
  EXPECT_EQ(group(errors, "all").all.count, 3297U);
  for (const NetworkErrors& one : errors)
    if (one.group != "b: up to 1 MiB" && one.group != "a: up to 64 KiB") {
      EXPECT_LT(one.large.mean, 30.0) << one.group;
    }
}

// Knowing the time of the shortest message helps most with short ones.
TEST(NetworkErrors, AKnownLatencyHelpsShortMessages) {
  const std::vector<CollectiveSeries> series = measured_collectives();
  const auto peak = network_errors(predict_left_out(series, KnownOfSystem::peak));
  const auto both = network_errors(predict_left_out(series, KnownOfSystem::peak_and_latency));
  EXPECT_LT(group(both, "a: up to 64 KiB").all.mean, 0.7 * group(peak, "a: up to 64 KiB").all.mean);
}

// A table made by the model itself, with constants unlike the prior's, is fitted without error.
TEST(NetworkFit, FindsTheConstantsThatMadeATable) {
  NetworkParameters made = network_parameters();
  for (LinkParameters& link : made.links) {
    link.hop_s *= 1.5;
    link.simple_s *= 0.6;
  }
  std::vector<CollectiveSeries> series = measured_collectives();
  for (CollectiveSeries& one : series) {
    const double peak_gbs = one.peak_gbs();
    for (CollectivePoint& point : one.points) {
      point.time_s =
          collective_time(made, one.kind, one.group, point.message_bytes, peak_gbs).time_s;
    }
  }
  const auto before =
      network_errors(predict_series(network_parameters(), series, KnownOfSystem::peak));
  const auto after =
      network_errors(predict_series(fit_network(series), series, KnownOfSystem::peak));
  EXPECT_GT(group(before, "all").all.mean, 5.0);
  EXPECT_LT(group(after, "all").all.mean, 0.3 * group(before, "all").all.mean);
}

TEST(NetworkMeasurements, ReadsLinksFromWords) {
  const auto kinds = [](const char* gpu, const char* link) {
    const CollectiveGroup group = group_of(16.0, 2.0, gpu, link);
    return std::pair(group.inside, group.between);
  };
  using enum LinkKind;
  EXPECT_EQ(kinds("NVIDIA H100 80GB HBM3", "multi-node (net not stated)"), std::pair(nvlink, rdma));
  EXPECT_EQ(kinds("NVIDIA A100-PCIE-40GB", "8x IB HDR"), std::pair(pcie, rdma));
  EXPECT_EQ(kinds("NVIDIA GeForce RTX 3090", "NVLink bridge + 10G Ethernet"),
            std::pair(nvlink, tcp));
  EXPECT_EQ(kinds("A100", "RoCE over Ethernet"), std::pair(nvlink, rdma));
  EXPECT_EQ(kinds("A100", "NVSwitch + EFA"), std::pair(nvlink, libfabric));
  EXPECT_EQ(kinds("AMD Instinct MI300X", "Infinity Fabric"), std::pair(nvlink, rdma));
}

constexpr std::string_view header = "system,gpu,gpus,nodes,link,collective,bytes,time_us\n";

std::vector<CollectiveSeries> series_of(const std::string& rows) {
  return parse_collective_series(std::string(header) + rows, "t.csv");
}

TEST(NetworkMeasurements, RepeatsBecomeTheirMedian) {
  const auto series = series_of(
      "s,A100,8,1,NVLink,alltoall,1000,30\ns,A100,8,1,NVLink,alltoall,1000,10\n"
      "s,A100,8,1,NVLink,alltoall,1000,11\ns,A100,8,1,NVLink,alltoall,2000,40\n");
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(series[0].kind, CollectiveKind::all_to_all);
  ASSERT_EQ(series[0].points.size(), 2U);
  EXPECT_DOUBLE_EQ(series[0].points[0].time_s, 11e-6);
  EXPECT_NEAR(series[0].peak_gbs(), 1000.0 * 0.875 / 11e-6 * 1e-9, 1e-12);
}

TEST(NetworkMeasurements, RefusesBadRows) {
  const auto fails = [](const std::string& rows, std::string_view what) {
    expect_error<DataError>([&] { return series_of(rows); }, what);
  };
  fails("s,A100,1,1,NVLink,all_reduce,10,1\n", "t.csv:2: 1 GPUs on 1 nodes");
  fails("s,A100,2,4,NVLink,all_reduce,10,1\n", "t.csv:2: 2 GPUs on 4 nodes");
  fails("s,A100,8,1,NVLink,allreduce,10,1\n",
        "t.csv:2: collective 'allreduce' is not known; did you mean 'all_reduce'?");
  fails("s,A100,8,1,NVLink,all_reduce,10,-1\n", "time_us");
  fails("s,A100,8,1,NVLink,all_reduce,1e30,1\n", "t.csv:2: 1e+30 bytes in 1 us; expected at most");
  fails("s,A100,8,1,NVLink,all_reduce,10,1e-9\n", "t.csv:2: 10 bytes in 1e-09 us; expected");
  fails("", "t.csv has no rows");
  expect_error<UsageError>(
      [] {
        return predict_left_out(series_of("s,A100,8,1,NVLink,all_reduce,10,1\n"),
                                KnownOfSystem::peak);
      },
      "at least two systems");
}

}  // namespace
}  // namespace rubato
