#include "models/validation/network_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/calibration/network_fit.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

std::vector<CollectiveSeries> measured(std::initializer_list<const char*> folders) {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : folders)
    paths.push_back(source_dir() / "models/data/measured" / folder / "collectives.csv");
  return read_collective_series(paths);
}

const std::vector<CollectiveSeries>& measured_collectives() {
  static const auto all = measured({"nccl_tests", "aiconfigurator_nccl", "vidur_collectives"});
  return all;
}

const NetworkErrors& group(const std::vector<NetworkErrors>& errors, const std::string& name) {
  return *std::ranges::find(errors, name, &NetworkErrors::group);
}

std::vector<double> constants_of(const NetworkParameters& parameters) {
  std::vector<double> constants;
  visit_constants(parameters, [&](std::string_view, std::string_view, double value) {
    constants.push_back(value);
  });
  return constants;
}

// docs/network.md: the shipped constants are what the shipped tables give.
TEST(NetworkFit, ShippedConstantsComeFromTheShippedTables) {
  const std::vector<double> again = constants_of(fit_network(measured_collectives()));
  const std::vector<double> shipped = constants_of(network_parameters());
  ASSERT_EQ(again.size(), 35U);
  constexpr double as_printed = 0.02;  // where a step gains too little depends on the compiler
  for (std::size_t i = 0; i < again.size(); ++i)
    EXPECT_NEAR(again[i] / shipped[i], 1.0, as_printed) << i;
}

// Mean error in % of sends of 2 to 16 MB between GPUs of a node.
double error_of_sends(std::span<const NetworkPoint> points, std::string_view system) {
  constexpr double least_bytes = 2e6, most_bytes = 16e6;
  double sum = 0.0, count = 0.0;
  for (const NetworkPoint& point : points) {
    const CollectiveSeries& of = *point.series;
    const double bytes = point.measured.message_bytes;
    if (of.kind != CollectiveKind::send_recv || of.group.nodes > 1.0 || of.system != system ||
        bytes < least_bytes || bytes > most_bytes)
      continue;
    sum += 100.0 * point.error();
    count += 1.0;
  }
  EXPECT_GE(count, 10.0) << system;
  return sum / count;
}

// docs/network.md, section 2: systems that were left out, their bandwidth known. The goals: H100
// above 16 MiB 12 %; above 1 MiB a mean of 15 %; sends of 2 to 16 MB 20 %, but for CoreWeave's.
TEST(NetworkErrors, OfSystemsLeftOutStayWithinTheGoal) {
  const std::vector<NetworkPoint> points =
      predict_left_out(measured_collectives(), KnownOfSystem::bandwidth);
  const double dgx = error_of_sends(points, "a100-dgx-vidur"),
               pairs = error_of_sends(points, "a100-pairs-vidur");
  EXPECT_LT(0.5 * (dgx + pairs), 20.0) << dgx << ' ' << pairs;
  EXPECT_LT(std::max(dgx, pairs), 21.0) << dgx << ' ' << pairs;
  const auto errors = network_errors(points);
  const NetworkErrors& all = group(errors, "all");
  EXPECT_EQ(all.all.count, 4126U);
  EXPECT_LT(all.all.mean, 26.0);
  const auto& [tiny, brief, middle, lengthy] = all.by_size;
  const auto above = static_cast<double>(middle.count + lengthy.count);
  EXPECT_LT((middle.mean * static_cast<double>(middle.count) +
             lengthy.mean * static_cast<double>(lengthy.count)) /
                above,
            15.0);
  for (const char* h100 : {"h100-cluster-00", "h100-cluster-01"})
    EXPECT_LT(group(errors, h100).by_size[3].mean, 12.0) << h100;
  const NetworkErrors& newer = group(errors, "a100-nccl-2.27");
  EXPECT_LT(newer.by_size[1].mean, 25.0);
  EXPECT_LT(newer.by_size[2].mean, 15.0);
}

// Knowing the time of the shortest message helps most with short ones.
TEST(NetworkErrors, AKnownLatencyHelpsShortMessages) {
  const auto mean = [](KnownOfSystem known) {
    return group(
               network_errors(predict_series(network_parameters(), measured_collectives(), known)),
               "all")
        .by_size[0]
        .mean;
  };
  EXPECT_LT(mean(KnownOfSystem::bandwidth_and_latency), 0.7 * mean(KnownOfSystem::bandwidth));
}

// Mean error of a cluster as shipped, by class of message sizes.
std::vector<double> errors_on(const char* cluster, const std::vector<CollectiveSeries>& series,
                              std::string_view system) {
  std::array<double, message_classes.size() + 1> sums{}, counts{};
  const ClusterSpec spec = load_cluster(cluster);
  for (const CollectiveSeries& one : series) {
    if (one.system != system) continue;
    for (const CollectivePoint& point : one.points) {
      const Collective message{one.kind, point.message_bytes,
                               static_cast<std::uint32_t>(one.group.ranks), 1};
      const double time_s = collective_time(spec, message, network_parameters()).time_s;
      const auto c = static_cast<std::size_t>(
          std::ranges::lower_bound(message_classes, point.message_bytes) - message_classes.begin());
      sums[c] += 100.0 * std::abs(time_s / point.time_s - 1.0);
      counts[c] += 1.0;
    }
  }
  std::vector<double> means;
  for (std::size_t i = 0; i < sums.size(); ++i)
    means.push_back(counts[i] > 0.0 ? sums[i] / counts[i] : 0.0);
  return means;
}

// docs/network.md, section 3: what a user who names a cluster gets.
TEST(NetworkErrors, ShippedClustersMeetWhatWasMeasuredOnThem) {
  const auto a100 = errors_on("dgx-a100", measured_collectives(), "a100-nccl-2.27");
  EXPECT_LT(a100[0], 10.0);
  EXPECT_LT(a100[1], 12.0);
  EXPECT_LT(a100[2], 15.0);
  EXPECT_LT(a100[3], 12.0);
  const auto h100 = errors_on("hgx-h100", measured({"vllm_allreduce"}), "h100-vllm");
  EXPECT_LT(h100[1], 25.0);
  EXPECT_LT(h100[2], 15.0);
  EXPECT_LT(errors_on("gcp-a3-mega", measured_collectives(), "gcp-a3-mega")[0], 10.0);
}

// A table made by the model itself, with constants unlike the prior's: the fit finds most of them
// again. The prior holds back the rest.
TEST(NetworkFit, FindsTheConstantsThatMadeATable) {
  NetworkParameters made = network_parameters();
  for (LinkParameters& link : made.links) {
    link.ramp_s *= 0.5;
    link.full_s *= 1.5;
  }
  std::vector<CollectiveSeries> series = measured_collectives();
  for (CollectiveSeries& one : series) {
    const double bus_gbs = one.endless_gbs(made, 1.0);
    for (CollectivePoint& point : one.points)
      point.time_s = one.time(made, point.message_bytes, bus_gbs, 1.0).time_s;
  }
  const auto mean = [&](const NetworkParameters& by) {
    return group(network_errors(predict_series(by, series, KnownOfSystem::bandwidth)), "all")
        .all.mean;
  };
  const double before = mean(network_parameters());
  EXPECT_GT(before, 4.0);
  EXPECT_LT(mean(fit_network(series)), 0.5 * before);
}

TEST(NetworkMeasurements, ReadsLinksFromWords) {
  const auto kinds = [](const char* gpu, const char* link) {
    const CollectiveGroup group = group_of(16.0, 2.0, gpu, link, false);
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
}

// The bandwidth with which the model gives the time that it gives with it.
TEST(NetworkMeasurements, EndlessBandwidthIsThatOfTheLongestMessages) {
  const NetworkParameters& p = network_parameters();
  std::vector<CollectiveSeries> series =
      series_of("s,A100,8,1,NVLink,all_gather,1e3,1\ns,A100,8,1,NVLink,all_gather,1e9,1\n");
  for (CollectivePoint& point : series[0].points)
    point.time_s = series[0].time(p, point.message_bytes, 222.0, 1.0).time_s;
  EXPECT_NEAR(series[0].endless_gbs(p, 1.0), 222.0, 0.01);
}

TEST(NetworkMeasurements, AColumnSaysWhichLibrary) {
  const auto kinds = [](const std::string& rows) {
    std::vector<LinkKind> kinds;
    const std::string text = "system,gpu,gpus,nodes,link,collective,bytes,time_us,library\n" + rows;
    for (const CollectiveSeries& one : parse_collective_series(text, "t.csv"))
      kinds.push_back(one.group.inside);
    return kinds;
  };
  using enum LinkKind;
  EXPECT_EQ(kinds("a,A100,8,1,NVLink,alltoall,1000,30,older\n"
                  "b,A100,8,1,NVLink,alltoall,1000,30,newer\n"
                  "c,A100,8,1,NVLink,alltoall,1000,30,\n"
                  "d,A100,8,1,PCIe,alltoall,1000,30,older\n"),
            (std::vector{nvlink_older, nvlink, nvlink, pcie}));
  expect_error<DataError>([&] { return kinds("a,A100,8,1,NVLink,alltoall,1000,30,2.18\n"); },
                          "t.csv:2: library '2.18' is not known; expected newer or older");
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
                                KnownOfSystem::bandwidth);
      },
      "at least two systems");
}

}  // namespace
}  // namespace rubato
