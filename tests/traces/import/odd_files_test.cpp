// Files that tools of other years, other settings and other hands wrote: what is in them counts.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/capture.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

using OddFiles = FileTest;

// `count` products of 50 us one after the other, each launched by its own call under aten::mm.
std::string events(int count, double duration_us = 50.0, std::string_view kernel = "sgemm",
                   std::string_view op = "aten::mm") {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int at = 100 * i;
    text += fmt::format(
        R"({}{{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 9, "tid": 9, "ts": {}, "dur": 30, "args": {{"External id": {}, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": {}, "dur": 5, "args": {{"External id": {}, "correlation": {}}}}},
{{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{"External id": {}, "device": 0, "stream": 7, "correlation": {}, "grid": [2, 1, 1], "block": [32, 1, 1]}}}})",
        i == 0 ? "" : ",\n", op, at + 10, i + 1, at + 15, i + 1, 1000 + i, kernel, at + 40,
        duration_us, i + 1, 1000 + i);
  }
  return text;
}

std::string trace(const std::string& list, const std::string& members = "") {
  return "{" + members + "\"traceEvents\": [" + list + "]}";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
    text.replace(at, from.size(), to), at += to.size();
  return text;
}

std::string left_out(const Capture& capture) {
  std::string text;
  for (const std::string& line : capture.left_out) text += line + "; ";
  return text;
}

TEST_F(OddFiles, AKinetoFileMergedWithItselfCountsOnce) {
  const Capture once = import_capture(file("a.json", trace(events(4))));
  const Capture twice = import_capture(file("b.json", trace(events(4) + "," + events(4))));
  EXPECT_EQ(twice.launches, once.launches);
  EXPECT_EQ(twice.calls, once.calls);
  EXPECT_EQ(twice.kernels, once.kernels);
  EXPECT_EQ(left_out(twice), "4 launches that are in the file twice; ");
}

// Chrome's format: recorders append, so that the last bracket may be missing.
TEST_F(OddFiles, ABareArrayNeedsNoLastBracket) {
  const Capture whole = import_capture(file("a.json", "[" + events(3) + "]"));
  for (const char* end : {"", "\n", ",", ",\n", ",]", ", ]\n"})
    EXPECT_EQ(import_capture(file("b.json", "[" + events(3) + end)).launches, whole.launches)
        << end;
  const std::string cut = "[" + events(3);
  expect_error<DataError>(
      [&] { (void)import_capture(file("c.json", cut.substr(0, cut.size() - 20))); },
      "what begins here does not end");
  expect_error<DataError>([&] { (void)import_capture(file("d.json", "[" + events(1) + "]]")); },
                          "something follows the end");
  const std::string object = trace(events(3));
  expect_error<DataError>(
      [&] { (void)import_capture(file("e.json", object.substr(0, object.size() - 2))); },
      "the file ends early");
}

TEST_F(OddFiles, ArgumentsMayBeTexts) {
  std::string text = events(3);
  const Capture plain = import_capture(file("a.json", trace(text)));
  for (int i = 0; i < 3; ++i)
    text = replaced(text, fmt::format("\"correlation\": {}", 1000 + i),
                    fmt::format("\"correlation\": \"{}\"", 1000 + i));
  text = replaced(text, "\"stream\": 7", "\"stream\": \"7\"");
  text = replaced(text, "\"grid\": [2, 1, 1]", R"("grid": ["2", "1", "1"])");
  const Capture texts = import_capture(file("b.json", trace(text)));
  EXPECT_EQ(texts.launches, plain.launches);
  EXPECT_EQ(texts.kernels, plain.kernels);
  EXPECT_EQ(texts.streams, plain.streams);
  // Without arguments the rows say it.
  std::string rows = replaced(events(3), "\"device\": 0, \"stream\": 7, ", "");
  rows = replaced(rows, R"("pid": 0, "tid": 7)", R"("pid": "GPU 3", "tid": "stream 20")");
  const Capture labelled = import_capture(file("c.json", trace(rows)));
  EXPECT_EQ(labelled.devices.at(0).id, 3U);
  EXPECT_EQ(labelled.streams.at(0).id, 20);
}

TEST_F(OddFiles, UnitsOfStartsAndDurationsAreOne) {
  const auto refused = [&](double duration_us, const std::string& why) {
    expect_error<DataError>(
        [&] { (void)import_capture(file("u.json", trace(events(20, duration_us)))); }, why,
        "have different units");
  };
  refused(0.05, "half of its kernels last at most 0.05 us");  // 50 us, in ms
  refused(50'000.0, "the 20 launches of a stream take 1 s and begin within 1.9 ms");  // in ns
  EXPECT_EQ(import_capture(file("u.json", trace(events(20, 0.9)))).launches.size(), 20U);
  // Few launches tell nothing.
  EXPECT_EQ(import_capture(file("u.json", trace(events(15, 0.05)))).launches.size(), 15U);
}

TEST_F(OddFiles, TracesWithoutDeviceWorkSayWhatTheyHold) {
  const std::string begins = replaced(events(2), "\"ph\": \"X\"", "\"ph\": \"B\"");
  expect_error<DataError>([&] { (void)import_capture(file("b.json", trace(begins))); },
                          "its kernels are pairs of events", "one event ('X')");
  const std::string other =
      replaced(events(2), "\"cat\": \"kernel\"", "\"cat\": \"mtia_ccp_events\"");
  expect_error<DataError>(
      [&] { (void)import_capture(file("m.json", trace(replaced(other, "cuda_runtime", "mtia")))); },
      "there is no device work in it; its categories are cpu_op, mtia, mtia_ccp_events");
}

TEST_F(OddFiles, GenerationsOfGpusAreRead) {
  const Capture capture = import_capture(file(
      "g.json", trace(events(1), R"("deviceProperties": [{"id": 0, "name": "Graphics Device", )"
                                 R"("computeMajor": 9, "computeMinor": 0, "numSms": 132}], )")));
  EXPECT_EQ(capture.devices.at(0).name, "Graphics Device");
  EXPECT_EQ(capture.devices.at(0).compute_capability, 9.0);
  EXPECT_EQ(capture.devices.at(0).sm_count, 132U);
  save_capture(capture, folder_ / "c.json");
  EXPECT_EQ(import_capture(folder_ / "c.json").devices, capture.devices);
  const Capture absurd = import_capture(
      file("h.json", trace(events(1), R"("deviceProperties": [{"id": 0, "name": "X", )"
                                      R"("computeMajor": -1, "numSms": 99999999}], )")));
  EXPECT_FALSE(absurd.devices.at(0).compute_capability);
  EXPECT_FALSE(absurd.devices.at(0).sm_count);
}

TEST_F(OddFiles, OperatorsTellClassesWhereNamesDoNot) {
  const auto kind = [&](std::string_view kernel, std::string_view op) {
    const Capture capture = import_capture(file("o.json", trace(events(1, 50.0, kernel, op))));
    return capture.kernels.at(0).kind;
  };
  EXPECT_EQ(kind("c3a7f", "aten::mm"), KernelClass::gemm);
  EXPECT_EQ(kind("c3a7f", "aten::_softmax"), KernelClass::softmax);
  EXPECT_EQ(kind("c3a7f", "c10d::allreduce_"), KernelClass::communication);
  EXPECT_EQ(kind("c3a7f", "aten::lgamma"), KernelClass::other);
  EXPECT_EQ(kind("void flash::activation<float>(float*)", "aten::relu"), KernelClass::elementwise);
  EXPECT_EQ(kind("void flash::activation<float>(float*)", "mylib::relu"), KernelClass::attention);
  EXPECT_EQ(kind("void softmax_warp_forward<float>(float*)", "aten::mm"), KernelClass::softmax);
}

class OddExports : public FileTest {
 protected:
  // Two kernels, a copy of either form's columns, then whatever more is done to them.
  [[nodiscard]] Capture made(const std::string& more) const {
    const std::filesystem::path path = folder_ / "n.sqlite";
    std::filesystem::remove(path);
    SqlConnection(path, SqlConnection::Mode::create)
        .execute(R"(
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      INSERT INTO StringIds VALUES (1, 'void gemm<1>(P)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000');
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,
        demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ);
      CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (1000, 2500, 0, 7, 5, 16777216, 1, 2, 4, 1, 1, 128, 1, 1),
        (3000, 4900, 0, 7, 6, 16777216, 1, 2, 4, 1, 1, 128, 1, 1);
      INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 12, 16777217, 5, 3), (20, 22, 16777217, 6, 3);)" +
                 more);
    return import_capture(path);
  }
};

TEST_F(OddExports, TablesThatLackColumns) {
  const Capture whole = made("");
  const auto kept = [](const std::string& columns) {
    return "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO k; CREATE TABLE "
           "CUPTI_ACTIVITY_KIND_KERNEL AS SELECT start, end, deviceId, streamId, correlationId, "
           "globalPid, " +
           columns + " FROM k;";
  };
  const std::string grid = "gridX, gridY, gridZ, blockX, blockY, blockZ";
  EXPECT_EQ(made(kept("demangledName, " + grid)).kernels, whole.kernels);
  EXPECT_EQ(made(kept("shortName, " + grid)).kernels.at(0).label, "gemm");
  EXPECT_FALSE(made(kept("demangledName, shortName")).kernels.at(0).launch);
  EXPECT_EQ(made("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = NULL;").kernels.at(0).label,
            "gemm");
  // Tables that only add something.
  EXPECT_EQ(made("CREATE TABLE TARGET_INFO_CUDA_DEVICE (cudaId, gpuId); CREATE TABLE "
                 "TARGET_INFO_GPU (id, chipName); INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, "
                 "0); INSERT INTO TARGET_INFO_GPU VALUES (0, 'GA100');")
                .launches,
            whole.launches);
  EXPECT_EQ(made("CREATE TABLE NVTX_EVENTS (start, end, eventType, textId, globalTid); INSERT INTO "
                 "StringIds VALUES (9, 'iteration 4'); INSERT INTO NVTX_EVENTS VALUES (1, 90, 59, "
                 "9, 16777217), (1, 90, 34, 9, 16777217);")
                .steps.at(0)
                .name,
            "iteration 4");
  const Capture old = made(
      "CREATE TABLE TARGET_INFO_CUDA_GPU (id, name, computeMajor, computeMinor, smCount); INSERT "
      "INTO TARGET_INFO_CUDA_GPU VALUES (0, 'A', 8, 6, 84);");
  EXPECT_EQ(old.devices, (std::vector<CaptureDevice>{{0, "A", 8.6, 84U}}));
}

TEST_F(OddExports, TextsAndCopiesOfRows) {
  const Capture whole = made("");
  const Capture texts = made(
      "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = CAST(start AS TEXT), gridX = CAST(gridX AS "
      "TEXT);");
  EXPECT_EQ(texts.launches, whole.launches);
  EXPECT_EQ(texts.kernels, whole.kernels);
  const Capture twice = made(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL; INSERT "
      "INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME;");
  EXPECT_EQ(twice.launches, whole.launches);
  EXPECT_EQ(twice.calls, whole.calls);
  EXPECT_EQ(left_out(twice), "2 launches that are in the file twice; ");
}

const std::string compute_head =
    R"("ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value")"
    "\n";

std::string compute_row(int id, std::string_view kernel, std::string_view section,
                        std::string_view metric, std::string_view unit, std::string_view value) {
  return fmt::format("\"{}\",\"{}\",\"{}\",\"{}\",\"{}\",\"{}\"\n", id, kernel, section, metric,
                     unit, value);
}

// What 'ncu --csv' prints when asked for nothing.
TEST_F(OddFiles, DetailsPageOfNsightCompute) {
  const std::string rows =
      compute_row(0, "k", "GPU Speed Of Light Throughput", "Memory Throughput", "%", "41.5") +
      compute_row(0, "k", "GPU Speed Of Light Throughput", "Duration", "us", "1,100.5") +
      compute_row(0, "k", "Memory Workload Analysis", "Memory Throughput", "Gbyte/s", "2") +
      compute_row(1, "k", "GPU Speed Of Light Throughput", "Duration", "msecond", "2") +
      compute_row(1, "k", "GPU Speed Of Light Throughput", "Memory Throughput", "%", "41.5");
  const Capture capture = import_capture(file("d.csv", compute_head + rows));
  ASSERT_EQ(capture.launches.size(), 2U);
  EXPECT_EQ(capture.launches[0].duration_ns, 1'100'500);
  EXPECT_EQ(capture.launches[1].duration_ns, 2'000'000);
  EXPECT_DOUBLE_EQ(*capture.kernels[0].dram_bytes, 2e9 * 1100.5e-6);
  EXPECT_FALSE(capture.kernels[1].dram_bytes);
}

TEST_F(OddFiles, OutputsOfNsightComputeThatWereAppended) {
  const std::string name = "gpu__time_duration.sum";
  const auto run = [&](std::string_view kernel) {
    return compute_row(0, kernel, "", name, "us", "10") +
           compute_row(1, kernel, "", name, "us", "20");
  };
  const Capture one = import_capture(file("1.csv", compute_head + run("a")));
  const std::string twice = compute_head + run("a") + "==PROF== Done\n" + compute_head + run("a");
  const Capture copied = import_capture(file("2.csv", twice));
  EXPECT_EQ(copied.launches, one.launches);
  EXPECT_NE(left_out(copied).find("2 lines that are in the file twice"), std::string::npos);
  EXPECT_EQ(import_capture(file("3.csv", compute_head + run("a") + compute_head + run("b")))
                .launches.size(),
            4U);
  // Two runs of one launch each have one ID.
  EXPECT_EQ(
      import_capture(file("4.csv", compute_head + compute_row(0, "a", "", name, "us", "10") +
                                       compute_head + compute_row(0, "a", "", name, "us", "11")))
          .launches.size(),
      2U);
  const std::string wide = R"("ID","Kernel Name","gpu__time_duration.sum")"
                           "\n\"\",\"\",\"us\"\n";
  EXPECT_EQ(
      import_capture(file("5.csv", wide + "\"0\",\"a\",\"10\"\n" + wide + "\"0\",\"b\",\"20\"\n"))
          .launches.size(),
      2U);
  // As a spreadsheet program saves them.
  for (const char separator : {';', '\t', ','}) {
    std::string saved = replaced(compute_head + run("a"), "\"", "");
    std::ranges::replace(saved, ',', separator);
    EXPECT_EQ(import_capture(file("6.csv", replaced(saved, "\n", "\r\n"))).launches, one.launches)
        << separator;
  }
}

TEST_F(OddFiles, TablesOfOtherToolsAreNamed) {
  const auto refused = [&](const std::string& text, const char* what) {
    expect_error<DataError>([&] { (void)import_capture(file("t.csv", text)); }, what);
  };
  refused("Start (ns),Duration (ns),CorrId,GrdX\n1,2,3,4\n", "is a list of 'nsys stats'");
  refused("Time (%),Total Time (ns)\n", "is a summary of 'nsys stats'");
  refused("==42== NVPROF is profiling process 42\n\"Start\",\"Duration\"\n", "is output of nvprof");
  refused("\"Kind\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n",
          "is a table of rocprofv3");
}

}  // namespace
}  // namespace rubato
