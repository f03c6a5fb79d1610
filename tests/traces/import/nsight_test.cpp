// Exports of Nsight Systems and Nsight Compute.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

using Nsight = FileTest;

TEST_F(Nsight, SystemsJoinsLaunchesByProcessToo) {
  const std::filesystem::path path = folder_ / "n.sqlite";
  {
    SqlConnection made(path, SqlConnection::Mode::create);
    made.execute(R"(
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      INSERT INTO StringIds VALUES (1, 'void flash_fwd_kernel<1>(P)'), (2, 'flash_fwd_kernel'), (3, 'launch');
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,
        demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ);
      CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
      CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid);
      CREATE TABLE TARGET_INFO_GPU (id, name);
      INSERT INTO TARGET_INFO_GPU VALUES (0, 'A'), (1, 'B');
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (100, 150, 0, 7, 5, 16777216, 1, 2, 4, 1, 1, 128, 1, 1),
        (100, 190, 1, 7, 5, 33554432, 1, 2, 4, 1, 1, 128, 1, 1),
        (200, 250, 1, 7, 6, 33554432, 1, 2, 4, 1, 1, 128, 1, 1);
      INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 12, 16777217, 5, 3), (20, 22, 33554433, 5, 3);
      INSERT INTO NVTX_EVENTS VALUES (5, 15, 59, 'forward', NULL, 16777217), (1, 30, 59, 'iteration 4', NULL, 16777217),
        (1, NULL, 34, 'backward', NULL, 16777217);)");
  }
  const Capture capture = import_capture(path);
  ASSERT_EQ(capture.launches.size(), 3U);
  EXPECT_EQ(capture.launches[0].launch_ns, 10);
  EXPECT_EQ(capture.launches[0].pass, Pass::forward);
  EXPECT_EQ(capture.launches[1].launch_ns, 20);
  EXPECT_FALSE(capture.launches[2].launch_ns);
  EXPECT_EQ(capture.steps.size(), 1U);
  EXPECT_EQ(capture.kernels[0].kind, KernelClass::attention);
  EXPECT_EQ(capture.devices.size(), 2U);
  EXPECT_EQ(capture.devices[capture.streams[capture.launches[1].stream].device].name, "B");
  {
    SqlConnection made(path, SqlConnection::Mode::create);
    made.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 'late' WHERE correlationId = 6");
  }
  expect_error<DataError>([&] { (void)import_capture(path); }, "column 'end' holds another type");
  EXPECT_EQ(import_capture(path, {.partial = true}).launches.size(), 2U);
  {
    SqlConnection made(path, SqlConnection::Mode::create);
    made.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; CREATE TABLE CUDA_GRAPH_TRACE (start)");
  }
  expect_error<DataError>([&] { (void)import_capture(path); },
                          "no table CUPTI_ACTIVITY_KIND_KERNEL", "--cuda-graph-trace=node");
}

// In a container the process ids of TARGET_INFO_CUDA_DEVICE are others; CUDA_VISIBLE_DEVICES makes
// the host's GPU 3 the process's GPU 0.
TEST_F(Nsight, GpusAreNamedWhateverTheirNumbers) {
  const std::string tables = R"(
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      INSERT INTO StringIds VALUES (1, 'k');
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,
        demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ);
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (100, 150, 0, 7, 5, 16777216, 1, 1, 4, 1, 1, 128, 1, 1);
      CREATE TABLE TARGET_INFO_GPU (id, name);
      CREATE TABLE TARGET_INFO_CUDA_DEVICE (pid, cudaId, gpuId);)";
  const auto name = [&](const std::string& more) {
    const std::filesystem::path path = folder_ / "gpus.sqlite";
    std::filesystem::remove(path);
    SqlConnection(path, SqlConnection::Mode::create).execute(tables + more);
    return import_capture(path).devices.at(0).name;
  };
  const std::string two = "INSERT INTO TARGET_INFO_GPU VALUES (0, 'A'), (3, 'B');";
  EXPECT_EQ(name("INSERT INTO TARGET_INFO_GPU VALUES (1, 'A'), (2, 'A');"), "A");
  EXPECT_EQ(name(two + "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 3);"), "B");
  EXPECT_EQ(name(two + "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (77, 0, 3), (78, 0, 3);"), "B");
  EXPECT_EQ(name(two + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1; INSERT INTO "
                       "TARGET_INFO_CUDA_DEVICE VALUES (1, 1, 0);"),
            "A");
}

TEST_F(Nsight, ComputeInBothForms) {
  const std::string wide =
      "==PROF== Connected\nprogram says \"hello\"\n"
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\","
      "\"dram__bytes_read.sum\",\"dram__bytes_write.sum\",\"gpu__time_duration.sum\","
      "\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\","
      "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"byte\",\"us\",\"inst\",\"inst\"\n"
      "\"0\",\"9\",\"add(float*)\",\"7\",\"(256, 1, 1)\",\"(64, 2, "
      "1)\",\"0\",\"1.5\",\"2,500\",\"3.25\","
      "\"1,000,000\",\"10\"\n"
      "\"1\",\"9\",\"other()\",\"7\",\"(32, 1, 1)\",\"(1, 1, "
      "1)\",\"0\",\"n/a\",\"n/a\",\"1\",\"n/a\",\"n/a\"\n"
      "==PROF== Disconnected\n";
  const Capture capture = import_capture(file("ncu.csv", wide));
  ASSERT_EQ(capture.launches.size(), 2U);
  EXPECT_EQ(capture.launches[0].duration_ns, 3250);
  EXPECT_EQ(capture.launches[1].start_ns, 3250);
  EXPECT_EQ(capture.kernels[0].dram_bytes, 1.5e6 + 2500.0);
  EXPECT_EQ(capture.kernels[0].flops, 1e6 + 20.0);
  EXPECT_EQ(capture.kernels[0].work_source, WorkSource::measured);
  EXPECT_EQ(capture.kernels[0].launch, (LaunchShape{{64, 2, 1}, {256, 1, 1}}));
  EXPECT_FALSE(capture.kernels[1].dram_bytes);

  const std::string head =
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  const Capture other = import_capture(
      file("long.csv", head + "\"0\",\"k\",\"gpu__time_duration.sum\",\"nsecond\",\"27.595.520\"\n"
                              "\"0\",\"k\",\"dram__bytes.sum\",\"Gbyte\",\"1,5\"\n"));
  EXPECT_EQ(other.launches.at(0).duration_ns, 27595520);
  EXPECT_EQ(other.kernels[0].dram_bytes, 1.5e9);
  const auto bad =
      file("bad.csv", head + "\"0\",\"k\",\"gpu__time_duration.sum\",\"fortnight\",\"1\"\n");
  expect_error<DataError>([&] { (void)import_capture(bad); }, "'1' 'fortnight'",
                          "--print-units base");
  const auto none = file("none.csv", head + "\"0\",\"k\",\"gpu__time_duration.sum\",\"\",\"1\"\n");
  expect_error<DataError>([&] { (void)import_capture(none); }, "'1' ''", "--print-units base");
}

// One file as locales write it: what a cell alone cannot tell ("117.120"), others of its file do.
TEST_F(Nsight, ComputeKnowsTheLocaleOfTheWholeFile) {
  struct Row {
    std::string bytes, ns, percent;
  };
  const auto total_ns = [&](const std::vector<Row>& rows) {
    std::string text =
        "\"ID\",\"Kernel Name\",\"CC\",\"dram__bytes.sum\",\"gpu__time_duration.sum\","
        "\"sm__throughput.avg.pct\"\n\"\",\"\",\"\",\"byte\",\"ns\",\"%\"\n";
    for (const Row& row : rows)
      text +=
          "\"0\",\"k\",\"8.0\",\"" + row.bytes + "\",\"" + row.ns + "\",\"" + row.percent + "\"\n";
    std::int64_t sum = 0;
    for (const CapturedLaunch& launch : import_capture(file("locale.csv", text)).launches)
      sum += launch.duration_ns;
    return sum;
  };
  constexpr std::int64_t expected = 117'120 + 9'856 + 896;
  EXPECT_EQ(
      total_ns({{"595,520", "117,120", "45.50"}, {"512", "9,856", "12.34"}, {"8", "896", "1"}}),
      expected);
  EXPECT_EQ(
      total_ns({{"595.520", "117.120", "45,50"}, {"512", "9.856", "12,34"}, {"8", "896", "1"}}),
      expected);
  for (const char* blank : {" ", "\xc2\xa0", "\xe2\x80\xaf", "\xa0", "'", "\xe2\x80\x99"}) {
    const std::string b = blank;
    EXPECT_EQ(total_ns({{"595" + b + "520", "117" + b + "120", "45,50"},
                        {"5", "9" + b + "856", "1"},
                        {"8", "896", "1"}}),
              expected)
        << blank;
  }
  // Whole bytes and ns tell where there are no percents.
  EXPECT_EQ(total_ns({{"512", "117.120", "1"}, {"512", "9.856", "1"}, {"8", "896", "1"}}),
            expected);
  EXPECT_EQ(total_ns({{"1.117.120", "117.120", "1"}, {"8", "10.752", "1"}}), expected);
  // A duration of 0 is none.
  EXPECT_EQ(total_ns({{"1", "0", "1"}, {"1", "127,872", "1"}}), expected);
}

}  // namespace
}  // namespace rubato
