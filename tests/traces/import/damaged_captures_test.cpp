// Damaged files of every format: each is refused with the place and what to do, or, with
// partial, read as far as it goes and said so.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/gzip.hpp"
#include "common/sqlite.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/capture_stats.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

class DamagedCaptures : public FileTest {
 protected:
  static void refused(const std::filesystem::path& path, std::string_view what,
                      std::string_view hint = {}, const ImportOptions& options = {}) {
    expect_error<DataError>([&] { (void)import_capture(path, options); }, what, hint);
  }
  // With partial: that many launches, and a line that says what was left out.
  static void partly(const std::filesystem::path& path, std::size_t launches,
                     std::string_view line) {
    const Capture capture = import_capture(path, {.partial = true});
    EXPECT_EQ(capture.launches.size(), launches) << path;
    bool said = false;
    for (const std::string& one : capture.left_out)
      said = said || one.find(line) != std::string::npos;
    EXPECT_TRUE(said) << path << ": no line '" << line << "'";
  }
  // A database of Nsight Systems with two good kernels.
  [[nodiscard]] std::filesystem::path nsight(const std::string& name,
                                             const std::string& more) const {
    std::filesystem::remove(folder_ / name);
    SqlConnection made(folder_ / name, SqlConnection::Mode::create);
    made.execute(R"(
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'copy');
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid,
        demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, bytes, copyKind);
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (100, 150, 0, 7, 5, 1, 1, 1, 4, 1, 1, 128, 1, 1), (200, 250, 0, 7, 6, 1, 2, 2, 4, 1, 1, 128, 1, 1);)" +
                 more);
    return folder_ / name;
  }
};

std::string kineto(int kernels, const std::string& more = "") {
  std::string text = R"({"schemaVersion": 1, "traceEvents": [)";
  for (int i = 0; i < kernels; ++i) {
    text += (i > 0 ? "," : "") +
            std::string(R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, )") +
            R"("tid": 7, "ts": )" + std::to_string(10 * i) +
            R"(, "dur": 5, "args": {"device": 0, "stream": 7}})";
  }
  return text + more + "]}";
}

TEST_F(DamagedCaptures, KinetoGzipCutOffOrDamaged) {
  // Names that do not pack, so that half of the bytes are about half of the events.
  std::string text = R"({"traceEvents": [)";
  std::uint32_t random = 1;
  for (int i = 0; i < 5000; ++i) {
    random = random * 1664525U + 1013904223U;
    text += (i > 0 ? "," : "") + std::string(R"({"ph": "X", "cat": "kernel", "name": "k)") +
            std::to_string(random) + R"(", "pid": 0, "tid": 7, "ts": )" + std::to_string(10 * i) +
            R"(, "dur": 5})";
  }
  std::string packed = gzip(text + "]}");
  const auto cut = file("cut.json.gz", packed.substr(0, packed.size() / 2));
  refused(cut, "the gzip data end early", "--partial takes what is there");
  const Capture begun = import_capture(cut, {.partial = true});
  EXPECT_GT(begun.launches.size(), 1000U);
  EXPECT_LT(begun.launches.size(), 4000U);
  ASSERT_EQ(begun.left_out.size(), 1U);
  EXPECT_NE(begun.left_out[0].find("the gzip data end early"), std::string::npos);
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) packed[i] = '\x5a';
  const auto bad = file("bad.json.gz", packed);
  EXPECT_THROW((void)import_capture(bad), DataError);  // nonsense may come before the damage shows
  std::string checksum = gzip(kineto(9));
  checksum[checksum.size() - 6] ^= 1;
  const auto wrong = file("sum.json.gz", checksum);
  refused(wrong, "the gzip data are damaged after", "--partial takes what is there");
  partly(wrong, 9, "the gzip data are damaged after");
  EXPECT_GT(import_capture(bad, {.partial = true}).launches.size(), 1000U);
}

TEST_F(DamagedCaptures, KinetoOfDifferentDevices) {
  const std::string other =
      R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 7, "ts": 5,
    "dur": 1, "args": {"device": 1, "stream": 7}})";
  std::string text = kineto(3, other);
  text.insert(
      1,
      R"("deviceProperties": [{"id": 0, "name": "A100"}, {"id": 1, "name": "H100"}, {"id": "x"}],)");
  const Capture capture = import_capture(file("two.json", text));
  EXPECT_EQ(capture.devices, (std::vector<CaptureDevice>{{0, "A100"}, {1, "H100"}}));
  EXPECT_EQ(capture.streams.size(), 2U);
  EXPECT_EQ(fold(capture).provenance.options, "device=0 stream=7 step=all");
  EXPECT_EQ(fold(capture, {.step = {}, .device = 1}).segments[0].launches.size(), 1U);
  const std::string none =
      R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": "GPU", "tid": 7, "ts": 5, "dur": 1})";
  refused(file("none.json", kineto(3, none)), "there is no device",
          "--partial leaves such events out");
  partly(folder_ / "none.json", 3, "1 events that cannot be read");
}

TEST_F(DamagedCaptures, KinetoSizesThatNoGpuHas) {
  const Capture capture =
      import_capture(file("odd.json", kineto(1, R"(, {"ph": "X", "cat": "kernel",
    "name": "ncclKernel", "pid": 0, "tid": 7, "ts": 50, "dur": 1, "args": {"device": 0, "stream": 7,
    "grid": [99999999999, 1, 1], "block": [-1, 1, 1], "Collective name": "allreduce",
    "In msg nelems": 5, "Group size": 99999999999, "dtype": "Float"}})")));
  EXPECT_FALSE(capture.kernels[1].launch);
  EXPECT_FALSE(capture.kernels[1].collective);
}

TEST_F(DamagedCaptures, NsightSystems) {
  refused(nsight("a.sqlite", "DROP TABLE StringIds"), "there is no table StringIds",
          "nsys export --type sqlite");
  refused(nsight("b.sqlite", "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId"),
          "streamId", "export again with a current");
  refused(nsight("c.sqlite", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL"),
          "there are no kernels in it");
  const std::string bad = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ";
  struct Case {
    const char *row, *what;
  };
  for (const Case& c :
       {Case{"(1.5, 9, 0, 7, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1)", "column 'start' holds another type"},
        Case{"(1, 9, -1, 7, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1)", "device -1 is absurd"},
        Case{"(1, 9, 0, 7, 6, 1, 99, 1, 1, 1, 1, 1, 1, 1)", "StringIds has no id 99"},
        Case{"(1, 9, 0, 7, 6, 1, 1, 1, -4, 1, 1, 1, 1, 1)",
             "column 'gridX' holds -4; expected 0 to"}}) {
    const auto path = nsight("d.sqlite", bad + c.row);
    refused(path, c.what);
    partly(path, 2, "1 rows with values of a wrong type or size");
  }
  const auto copy =
      nsight("e.sqlite", "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 2, 0, 7, -8, 1)");
  refused(copy, "column 'bytes' holds -8");
  partly(copy, 2, "1 rows with values of a wrong type or size");
  // Absurd durations are left out and counted without being asked.
  const Capture times = import_capture(
      nsight("f.sqlite", bad + "(300, 200, 0, 7, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1), "
                               "(0, 99999999999999999, 0, 7, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1)"));
  EXPECT_EQ(times.launches.size(), 2U);
  EXPECT_EQ(times.left_out, (std::vector<std::string>{"1 launches longer than a day",
                                                      "1 launches with a negative duration"}));
  // So are launches without a time: not collected, not over when recording ended.
  for (const char* start_and_end :
       {"(0, 0", "(NULL, 9", "(300, NULL", "(-9223372036854775807, 9223372036854775807",
        "(300, 9223372036854775807", "(300, 9e999 - 9e999"}) {
    const Capture known = import_capture(
        nsight("j.sqlite", bad + start_and_end + ", 0, 7, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1)"));
    EXPECT_EQ(known.launches.size(), 2U) << start_and_end;
    EXPECT_EQ(known.left_out, (std::vector<std::string>{"1 launches without a time"}));
  }
  refused(nsight("k.sqlite", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = NULL"),
          "none of its 2 launches has a time");
  const std::string name(std::size_t{10} << 20, 'n');
  const Capture named = import_capture(
      nsight("g.sqlite", "UPDATE StringIds SET value = '" + name + "' WHERE id = 1"));
  EXPECT_EQ(named.kernels[0].label.size(), name.size());
  EXPECT_LT(named.kernels[0].name.size(), 100U);
  std::ifstream raw(nsight("h.sqlite", ""), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(raw)), {});
  const std::string packed = gzip(bytes);
  EXPECT_EQ(import_capture(file("h.sqlite.gz", packed)).launches,
            import_capture(folder_ / "h.sqlite").launches);
  const auto cut = file("l.sqlite.gz", packed.substr(0, packed.size() - 20));
  for (const bool partial : {false, true})
    refused(cut, "the gzip data end early", "copy or download the file again",
            {.partial = partial});
  EXPECT_ANY_THROW((void)import_capture(file("i.sqlite", bytes.substr(0, 200))));
}

TEST_F(DamagedCaptures, NsightCompute) {
  const std::string head =
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  const auto row = [](int id, const std::string& value, const std::string& unit = "ns") {
    return "\"" + std::to_string(id) + "\",\"k\",\"gpu__time_duration.sum\",\"" + unit + "\",\"" +
           value + "\"\n";
  };
  refused(file("a.csv", head + row(0, "soon")), "gpu__time_duration.sum is 'soon' 'ns'",
          "--print-units base");
  refused(file("b.csv", head + row(0, "nan")), "no launch has gpu__time_duration.sum");
  partly(file("c.csv", head + row(0, "5") + row(1, "soon")), 1, "1 values that are no number");
  partly(file("d.csv", head + row(0, "5") + row(1, "nan") + row(2, "-5") + row(3, "1e300", "s")), 1,
         " values that are no number >= 0 or have an unknown unit");
  partly(folder_ / "d.csv", 1, "1 launches longer than a day");
  partly(folder_ / "d.csv", 1, "2 launches without a time");
  std::string many = head;
  for (int i = 0; i < 20'000; ++i) many += row(i, std::to_string(1000 + i * 7919 % 100'003));
  const std::string packed = gzip(many);
  const auto cut = file("e.csv.gz", packed.substr(0, packed.size() / 2));
  refused(cut, "the gzip data end early");
  EXPECT_GT(import_capture(cut, {.partial = true}).launches.size(), 1000U);
  refused(file("f.csv.gz", packed), "expands to more than 1000 bytes", "--max-expanded-gb",
          {.partial = false, .max_expanded_bytes = 1000});
}

const std::string good_node =
    R"({"Id": 1, "Name": "gemm", "NodeType": 4, "runtime": 30, "is_cpu_op": false})";

TEST_F(DamagedCaptures, ChakraJson) {
  const auto feeder = [&](const std::string& node) {
    return R"({"workload_graph": [)" + good_node + "," + node + "]}";
  };
  struct Case {
    const char *node, *what;
  };
  for (const Case& c :
       {Case{R"({"Name": "k", "is_cpu_op": false})", "a node without id or name"},
        Case{R"({"Id": "x", "Name": "k", "is_cpu_op": false})", "a node without id or name"},
        Case{R"({"Id": 2, "Name": "k", "runtime": "9", "is_cpu_op": false})",
             "'runtime' is not a number"},
        Case{R"({"Id": 2, "Name": "k", "ts": true, "is_cpu_op": false})",
             "'ts' is not a number"}}) {
    const auto path = file("a.json", feeder(c.node));
    refused(path, c.what, "--partial leaves it out");
    partly(path, 1, "1 nodes that cannot be read");
  }
  const std::string whole = feeder(good_node);
  const auto cut = file("b.json", whole.substr(0, whole.size() - 20));
  refused(cut, "the file ends", "--partial takes what comes before");
  partly(cut, 1, "what follows the damage");
  for (const auto& [runtime, line] : {std::pair{"-3", "1 launches with a negative duration"},
                                      {"1e12", "1 launches longer than a day"}}) {
    const auto path =
        file("c.json", feeder(R"({"Id": 2, "Name": "k", "is_cpu_op": false, "runtime": )" +
                              std::string(runtime) + "}"));
    const Capture capture = import_capture(path);
    EXPECT_EQ(capture.launches.size(), 1U);
    EXPECT_EQ(capture.left_out.back(), line);
  }
  for (const char* runtime : {"1e300", "NaN", "-9223372036854775808", "0", "null"}) {
    const Capture known = import_capture(
        file("e.json", feeder(R"({"Id": 2, "Name": "k", "is_cpu_op": false, "runtime": )" +
                              std::string(runtime) + "}")));
    EXPECT_EQ(known.launches.size(), 1U) << runtime;
    EXPECT_NE(std::ranges::find(known.left_out, "1 launches without a time"), known.left_out.end())
        << runtime;
  }
  const std::string name(std::size_t{10} << 20, 'n');
  const Capture named =
      import_capture(file("d.json", feeder(R"({"Id": 2, "Name": ")" + name +
                                           R"(", "runtime": 3, "is_cpu_op": false})")));
  EXPECT_EQ(named.kernels[1].label.size(), name.size());
}

TEST_F(DamagedCaptures, ChakraProtobuf) {
  // Metadata, then 3000 nodes "gemm" of 30 us with ids.
  std::string text("\x03\x0a\x01v", 4);
  for (int i = 1; i <= 3000; ++i) {
    std::string node = "\x12\x04gemm\x38\x1e\x52\x0e\x0a\x09is_cpu_op\xd8\x01";
    node += std::string(1, '\0');
    node += '\x08';
    node += static_cast<char>(0x80 | (i & 0x7f));
    node += static_cast<char>(i >> 7);
    text += static_cast<char>(node.size()) + node;
  }
  ASSERT_EQ(import_capture(file("a.et", text)).launches.size(), 3000U);
  const std::string packed = gzip(text);
  const auto cut = file("b.et.gz", packed.substr(0, packed.size() / 2));
  refused(cut, "the gzip data end early", "--partial");
  const Capture begun = import_capture(cut, {.partial = true});
  EXPECT_GT(begun.launches.size(), 100U);
  EXPECT_LT(begun.launches.size(), 3000U);
  EXPECT_NE(begun.left_out.front().find("what follows the damage"), std::string::npos);
  refused(file("c.et.gz", packed), "expands to more than 1000 bytes", "--max-expanded-gb",
          {.partial = false, .max_expanded_bytes = 1000});
  // A length that reaches behind the end, and a wire type that does not exist.
  refused(file("d.et", text + "\x70"), "the message ends early", "protobuf form");
  partly(folder_ / "d.et", 3000, "the message ends early");
  refused(file("e.et", text + std::string("\x02\x0f\x01", 3)), "wire type 7 is unknown");
  partly(folder_ / "e.et", 3000, "wire type 7 is unknown");
}

// Graphs recorded as a whole hide their kernels; an empty table says nothing.
TEST_F(DamagedCaptures, WholeCudaGraphsAreTold) {
  const std::string table =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, graphId);";
  EXPECT_TRUE(import_capture(nsight("empty.sqlite", table)).left_out.empty());
  const std::string rows =
      table + "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2, 0, 3), (4, 5, 0, 3);";
  const Capture capture = import_capture(nsight("graphs.sqlite", rows));
  EXPECT_EQ(capture.left_out,
            (std::vector<std::string>{"2 launches of whole CUDA graphs, whose kernels are not in "
                                      "the file; record with --cuda-graph-trace=node"}));
  refused(nsight("only.sqlite", rows + "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"),
          "there is no table CUPTI_ACTIVITY_KIND_KERNEL", "--cuda-graph-trace=node");
  refused(nsight("none.sqlite", rows + "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;"),
          "there are no kernels in it", "--cuda-graph-trace=node");
}

// PyTorch's host JSON with device nodes linked in: times from the profiler, work from the shapes of
// the operator that launched, passes from its callers.
TEST_F(DamagedCaptures, ChakraHostAndDeviceLinked) {
  const Capture capture =
      import_capture(file("linked.json", R"json({"schema": "1.1.0-chakra.0.0.4", "nodes": [
    {"id": 2, "name": "aten::mm", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [[8, 4], [4, 2]],
     "types": ["Tensor(float)", "Tensor(float)"]}, "ts": 1, "inclusive_dur": 9, "exclusive_dur": 9},
    {"id": 3, "name": "autograd::engine::evaluate_function: MmBackward0", "ctrl_deps": 1,
     "inputs": {"values": [], "shapes": [], "types": []}},
    {"id": 4, "name": "aten::mm", "ctrl_deps": 3, "inputs": {"values": [], "shapes": [[4, 8], [8, 2]],
     "types": ["Tensor(c10::Half)", "Tensor(c10::Half)"]}},
    {"id": 5, "name": "ampere_sgemm_128x64_tn", "ctrl_deps": 2, "cat": "kernel", "ts": 100.5, "dur": 12.25,
     "stream": 7, "inputs": {"values": [], "shapes": [], "types": []}},
    {"id": 6, "name": "splitKreduce_kernel", "ctrl_deps": 2, "cat": "kernel", "ts": 113, "dur": 20, "stream": 7},
    {"id": 7, "name": "ampere_h16816gemm", "ctrl_deps": 4, "cat": "kernel", "ts": 90, "dur": 3, "stream": 9},
    {"id": 8, "name": "Memcpy DtoD (Device -> Device)", "ctrl_deps": 4, "cat": "gpu_memcpy", "ts": 140,
     "dur": null, "stream": 7}]})json"));
  ASSERT_EQ(capture.launches.size(), 4U);
  const auto kernel = [&](std::size_t i) {
    return capture.kernels[index(capture.launches[i].kernel)];
  };
  EXPECT_EQ(capture.launches[0].start_ns, 90'000);
  EXPECT_EQ(kernel(0).pass, Pass::backward);
  EXPECT_EQ(kernel(0).flops, 2.0 * 4 * 8 * 2);
  EXPECT_EQ(kernel(0).dtype, Dtype::fp16);
  EXPECT_EQ(capture.launches[1].start_ns, 100'500);
  EXPECT_EQ(capture.launches[1].duration_ns, 12'250);
  EXPECT_EQ(kernel(1).pass, Pass::forward);
  EXPECT_EQ(kernel(1).gemm, (GemmShape{.m = 2, .n = 8, .k = 4}));
  EXPECT_EQ(kernel(1).work_source, WorkSource::derived);
  EXPECT_EQ(kernel(2).work_source, WorkSource::unknown);  // longer, but not the product
  EXPECT_EQ(kernel(3).kind, KernelClass::memcpy);
  EXPECT_EQ(capture.launches[3].duration_ns, 0);
  EXPECT_EQ(capture.streams.size(), 2U);
}

}  // namespace
}  // namespace rubato
