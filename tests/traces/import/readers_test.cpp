#include "traces/import/readers.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "tests/expect_error.hpp"
#include "tests/shared_data.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/operator_work.hpp"

namespace rubato {
namespace {

class Import : public testing::Test {
 protected:
  Import()
      : folder_(std::filesystem::temp_directory_path() /
                ("rubato_import_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Import() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  [[nodiscard]] std::filesystem::path gzipped(const std::string& name, const std::string& text,
                                              std::size_t cut = 0) const {
    const std::filesystem::path path = folder_ / name;
    gzFile out = gzopen(path.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    if (cut > 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - cut);
    return path;
  }

  std::filesystem::path folder_;
};

std::string trace_of(const std::string& events, const std::string& members = "") {
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Some GPU"}],)" + members +
         R"("traceEvents": [)" + events + R"(], "traceName": "a \"quoted\" name}]"})";
}

// One step: a product forward on the main thread, its gradient from the autograd thread, a
// collective on a stream of its own; a kernel launched before the file begins.
const std::string one_step = R"(
 {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 100, "dur": 900},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 110, "dur": 20, "args":
   {"External id": 7, "Input Dims": [[8, 4], [4, 2]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 115, "dur": 5,
  "args": {"correlation": 70}},
 {"ph": "X", "cat": "kernel", "name": "void sgemm<float, 4>(float*\u0029",
                  "pid" : 0, "tid" : 7, "ts" : 1200.125, "dur" : 10.5, "args" : {
  "External id" : 7, "device" : 0, "stream" : 7, "correlation" : 70, "grid" : [ 2, 1, 1 ],
                                                                              "block" : [ 32, 1, 1 ]
}
},
 {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: MmBackward0", "pid": 9,
  "tid": "other", "ts": 300, "dur": 50, "args": {"External id": 8}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "other", "ts": 310,
  "dur": 5, "args": {"correlation": 71}},
 {"ph": "X", "cat": "kernel", "name": "void sgemm<float, 4>(float*\u0029", "pid": 0, "tid": 7, "ts": 1220,
  "dur": 10, "args": {"External id": 8, "device": 0, "stream": 7, "correlation": 71, "grid": [2, 1, 1],
  "block": [32, 1, 1]}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 400, "dur": 5,
  "args": {"correlation": 72}},
 {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x\u0029", "pid": 0, "tid": 20,
  "ts": 1225, "dur": 20, "args": {"device": 0, "stream": 20, "correlation": 72, "grid": [8, 1, 1],
  "block": [64, 1, 1], "Collective name": "allreduce", "In msg nelems": 100, "Out msg nelems": 100,
  "Group size": 4, "dtype": "BFloat16"}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device\u0029", "pid": 0, "tid": 7, "ts": 1190,
  "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 60, "bytes": 64}},
 {"ph": "X", "cat": "kernel", "name": "before", "pid": 0, "tid": 7, "ts": 1180, "dur": 3, "args":
  {"device": 0, "stream": 7, "correlation": 50, "grid": [1, 1, 1], "block": [1, 1, 1]}},
 {"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "{[\"\\"}})";

TEST_F(Import, KinetoLinksKernelsToWhatLaunchedThem) {
  const std::string text = trace_of(one_step, R"("baseTimeNanoseconds": 1700000000000000000,)");
  for (const auto& path : {file("a.json", text), gzipped("b.json", text)}) {
    const Capture capture = import_capture(path);
    EXPECT_EQ(capture.devices, (std::vector<CaptureDevice>{{0, "Some GPU"}}));
    EXPECT_EQ(capture.epoch_ns, 1700000000000000000);
    EXPECT_TRUE(capture.left_out.empty());
    ASSERT_EQ(capture.launches.size(), 5U);  // by start
    const auto kernel = [&](std::size_t i) {
      return capture.kernels[index(capture.launches[i].kernel)];
    };
    EXPECT_EQ(kernel(0).name, "before");
    EXPECT_FALSE(capture.launches[0].step || capture.launches[0].launch_ns);
    EXPECT_EQ(capture.launches[0].pass, Pass::unknown);
    EXPECT_EQ(kernel(1).dram_bytes, 128.0);

    const Kernel forward = kernel(2);
    EXPECT_EQ(capture.launches[2].start_ns, 1'200'125);
    EXPECT_EQ(capture.launches[2].duration_ns, 10'500);
    EXPECT_EQ(capture.launches[2].launch_ns, 115'000);
    EXPECT_EQ(capture.launches[2].step, 0U);
    EXPECT_EQ(forward.pass, Pass::forward);
    EXPECT_EQ(forward.kind, KernelClass::gemm);
    EXPECT_EQ(forward.gemm, (GemmShape{.m = 2, .n = 8, .k = 4}));
    EXPECT_EQ(forward.flops, 2.0 * 8 * 4 * 2);
    EXPECT_EQ(forward.dram_bytes, 2.0 * (8 * 4 + 4 * 2 + 8 * 2));
    EXPECT_EQ(forward.work_source, WorkSource::derived);

    EXPECT_EQ(kernel(3).pass, Pass::backward);
    EXPECT_FALSE(kernel(3).flops);  // unknown is not zero
    EXPECT_EQ(kernel(3).work_source, WorkSource::unknown);

    const Kernel reduce = kernel(4);
    EXPECT_EQ(reduce.kind, KernelClass::communication);
    EXPECT_EQ(reduce.collective, (Collective{CollectiveKind::all_reduce, 200.0, 4}));
    EXPECT_EQ(capture.streams[capture.launches[4].stream].id, 20);

    const CaptureStats stats = capture_stats(capture);
    EXPECT_EQ(stats.kernels.launches, 4U);
    EXPECT_EQ(stats.kernels.time_ns, 43'500);
    EXPECT_EQ(stats.span_ns, 65'000);
    EXPECT_EQ(stats.busy_ns, 3'000 + 10'500 + 25'000);  // the collective overlaps
    EXPECT_EQ(stats.launched_in_file, 3U);
    EXPECT_EQ(stats.by_step.at(0).launches, 3U);
  }
}

// The gradients of a convolution: two products of one operator, and a kernel that prepares.
TEST_F(Import, TwoProductsOfAnOperatorShareItsWork) {
  std::string events = R"(
   {"ph": "X", "cat": "cpu_op", "name": "aten::convolution_backward", "pid": 9, "tid": 9, "ts": 1, "dur": 90,
    "args": {"External id": 7, "Input Dims": [[2, 16, 8, 8], [2, 4, 8, 8], [16, 4, 3, 3]],
    "Input type": ["float", "float", "float"], "Concrete Inputs": ["", "", "", "[0]", "[1, 1]", "[1, 1]",
    "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"]}})";
  int correlation = 0;
  for (const char* name : {"nchwToNhwcKernel", "xmma_dgrad", "xmma_wgrad"}) {
    ++correlation;
    events +=
        R"(, {"ph": "X", "cat": "kernel", "name": ")" + std::string(name) +
        R"(", "pid": 0, "tid": 7, "ts": )" + std::to_string(100 * correlation) +
        R"(, "dur": 50, "args": {"External id": 7, "device": 0, "stream": 7, "correlation": )" +
        std::to_string(correlation) + "}}";
  }
  const Capture capture = import_capture(file("conv.json", trace_of(events)));
  ASSERT_EQ(capture.kernels.size(), 3U);
  const double product = 2.0 * 2 * 16 * 64 * 4 * 9;
  EXPECT_FALSE(capture.kernels[0].flops);
  EXPECT_EQ(capture.kernels[1].flops, product);
  EXPECT_EQ(capture.kernels[2].flops, product);
  EXPECT_EQ(capture.kernels[1].work_source, WorkSource::derived);
}

TEST_F(Import, OldKinetoFilesNameThingsOtherwise) {
  const Capture capture = import_capture(file("old.json", R"([
    {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1661938466367897, "dur": 9,
     "args": {"External id": "x", "Input Dims": [[2, 2], [2, 2]], "Input type": ["float", "float"]}},
    {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1661938466367899,
     "dur": 1, "args": {"correlation": 5, "external id": 5}},
    {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 2, "tid": 3, "ts": 1661938466367999, "dur": 4,
     "args": {"device": 2, "stream": 3, "correlation": 5, "external id": 5}},
    {"ph": "X", "cat": "Memset", "name": "Memset (Device\u0029", "pid": 2, "tid": 3, "ts": 1661938466368999,
     "dur": 4, "args": {
  "device" : 2, "stream" : 3, "correlation" : 6, "bytes" : 8}}])"));
  ASSERT_EQ(capture.launches.size(), 2U);
  EXPECT_EQ(capture.launches[0].start_ns, 1661938466367999000);
  EXPECT_EQ(capture.kernels[0].flops, 16.0);  // the operator that encloses the launch
  EXPECT_EQ(capture.devices[0].id, 2U);
  EXPECT_EQ(capture_stats(capture).memsets.launches, 1U);
}

TEST_F(Import, BadKinetoFilesAreToldWithThePlace) {
  const std::string good = trace_of(one_step);
  const auto rejected = [&](const std::filesystem::path& path, std::string_view what,
                            std::string_view hint = {}) {
    expect_error<DataError>([&] { (void)import_capture(path); }, what, hint);
  };
  rejected(file("a.json", good.substr(0, good.size() / 2)), "the file ends", "--partial");
  rejected(file("b.json", good + "x"), "byte " + std::to_string(good.size()));
  rejected(gzipped("c.json.gz", good, 20), "the gzip data end early", "--partial");
  rejected(file("d.json", "{}"), "there is no device work", "ProfilerActivity.CUDA");
  rejected(file("e.json", ""), "is no capture that is known");
  rejected(file("run.nsys-rep", "\x01\x02"), "in its own format", "nsys export --type sqlite");
  rejected(file("f.json", trace_of("7")), "expected '{'");
  const auto with = [](const std::string& field) {
    return trace_of(one_step +
                    R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, )" + field +
                    "}");
  };
  rejected(file("g.json", with(R"("ts": "soon", "dur": 1)")), "is not a time in us");
  rejected(file("h.json", with(R"("ts": NaN, "dur": 1)")), "event at byte");
  rejected(file("i.json", with(R"("ts": 1e99, "dur": 1)")), "is not a time in us");
  rejected(file("j.json", with(R"("dur": 1)")), "there is no 'ts'");
  // With partial the good events stay, and what was left out is counted.
  const Capture most =
      import_capture(file("k.json", with(R"("ts": true, "dur": 1)")), {.partial = true});
  EXPECT_EQ(most.launches.size(), 5U);
  EXPECT_EQ(most.left_out, (std::vector<std::string>{"1 events that cannot be read"}));
  const Capture absurd = import_capture(
      file("l.json",
           with(R"("ts": 5, "dur": -4}, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0,
        "tid": 7, "ts": 5, "dur": 1e20)")),
      {.partial = true});
  EXPECT_EQ(absurd.launches.size(), 5U);
  EXPECT_EQ(absurd.left_out.size(), 2U);
  const Capture begun =
      import_capture(file("m.json", good.substr(0, good.size() - 300)), {.partial = true});
  EXPECT_GE(begun.launches.size(), 4U);
  ASSERT_EQ(begun.left_out.size(), 1U);
  EXPECT_NE(begun.left_out[0].find("the file ends"), std::string::npos);
}

TEST_F(Import, HugeNamesAndZipBombsHaveLimits) {
  const std::string name(std::size_t{10} << 20, 'n');
  const Capture capture =
      import_capture(file("n.json", trace_of(R"({"ph": "X", "cat": "kernel", "name": ")" + name +
                                             R"(\\\"", "pid": 0, "tid": 7, "ts": 1, "dur": 2})")));
  EXPECT_EQ(capture.kernels[0].label.size(), name.size() + 2);
  EXPECT_LT(capture.kernels[0].name.size(), 100U);
  const std::string spaces = "[" + std::string(std::size_t{4} << 20, ' ') + "]";
  expect_error<DataError>(
      [&] {
        (void)import_capture(gzipped("z.json.gz", spaces), {.max_expanded_bytes = 1'000'000});
      },
      "expands to more than 1000000 bytes", "--max-expanded-gb");
}

TEST_F(Import, NsightSystemsJoinsLaunchesByProcessToo) {
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

TEST_F(Import, NsightComputeInBothForms) {
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
}

TEST(OperatorWork, FollowsFromShapes) {
  const auto call = [](const char* name, std::vector<std::vector<std::uint64_t>> dims) {
    std::vector<Dtype> dtypes(dims.size(), Dtype::fp16);
    return OperatorCall{name, std::move(dims), std::move(dtypes)};
  };
  EXPECT_EQ(operator_work(call("aten::addmm", {{5}, {3, 4}, {4, 5}})).flops, 2.0 * 3 * 4 * 5);
  EXPECT_EQ(operator_work(call("aten::bmm", {{7, 3, 4}, {7, 4, 5}})).flops, 7 * 2.0 * 3 * 4 * 5);
  const std::vector<std::uint64_t> heads{2, 8, 64, 32}, lengths{2, 64, 8, 32};
  const double forward = 4.0 * 2 * 8 * 64 * 64 * 32;
  EXPECT_EQ(
      operator_work(call("aten::_scaled_dot_product_flash_attention", {heads, heads, heads})).flops,
      forward);
  EXPECT_EQ(
      operator_work(call("aten::_flash_attention_forward", {lengths, lengths, lengths})).flops,
      forward);
  const OperatorWork sum = operator_work(call("aten::add", {{10}, {10}}));
  EXPECT_EQ(sum.flops, 10.0);
  EXPECT_EQ(sum.dram_bytes, 60.0);
  EXPECT_EQ(sum.source, WorkSource::guessed);
  EXPECT_FALSE(operator_work(call("aten::mm", {{2, 3}, {4, 5}})).flops);
  EXPECT_EQ(operator_work(call("aten::item", {{}})).source, WorkSource::unknown);
}

TEST(KernelNames, SayWhatAKernelIs) {
  EXPECT_EQ(kernel_class_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
            KernelClass::communication);
  EXPECT_EQ(kernel_class_of("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT"), KernelClass::gemm);
  EXPECT_EQ(kernel_class_of("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32"), KernelClass::gemm);
  EXPECT_EQ(kernel_class_of("void at::native::reduce_kernel<512, 1>"), KernelClass::reduce);
  EXPECT_EQ(kernel_class_of("mystery"), KernelClass::other);
  EXPECT_EQ(
      short_kernel_name("void at::native::(anonymous namespace)::softmax_warp<float, 4>(float*)"),
      "softmax_warp");
  EXPECT_EQ(short_kernel_name("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(collective_kind_of("_reduce_scatter_base"), CollectiveKind::reduce_scatter);
}

// Launches a b (c d e)x4 f, twice the same kernel in a row.
TEST(Fold, FindsRunsThatRepeat) {
  CaptureBuilder builder("made");
  auto launch = [&, start = std::int64_t{0}](const char* name) mutable {
    Kernel kernel;
    kernel.label = name;
    builder.launch({.kernel = builder.kernel(kernel, name),
                    .stream = builder.stream(0, 7),
                    .start_ns = start += 100,
                    .duration_ns = 50,
                    .launch_ns = {},
                    .step = {}});
  };
  launch("a");
  launch("b");
  for (int i = 0; i < 4; ++i) {
    for (const char* name : {"c", "d", "d", "e"}) launch(name);
  }
  launch("f");
  const Trace trace = fold(std::move(builder).finish());
  ASSERT_EQ(trace.segments.size(), 3U);
  EXPECT_EQ(trace.segments[1].repeat, 4U);
  EXPECT_EQ(trace.segments[1].launches.size(), 4U);
  EXPECT_EQ(launch_counts(trace), (std::vector<std::uint64_t>{1, 1, 4, 8, 4, 1}));
  EXPECT_DOUBLE_EQ(trace.kernels[0].measured_time_s.value_or(0.0), 50e-9);
  EXPECT_EQ(parse_trace_json(to_json(trace), "again"), trace);
}

// Counts of the independent script that describes the shared traces.
struct Known {
  const char* file;
  std::uint64_t kernels;
  double time_us, span_us, busy_us;
  std::uint64_t names, copies, memsets, launched, collectives;
};

TEST(SharedCaptures, HaveTheCountsOfTheirDescription) {
  RUBATO_NEEDS_SHARED("traces");
  const Known all[] = {
      {"kineto_a100_ddp2_resnet.json.gz", 2700, 162532.340, 660551.006, 155215.309, 70, 960, 114,
       2700, 21},
      {"kineto_h100_qwen_fwd.json.gz", 1465, 45432.698, 49652.832, 45432.706, 26, 1, 241, 1029, 0},
      {"nsys_h100_2gpu_dit.sqlite", 4010, 535200.650, 299877.006, 0.0, 27, 1020, 269, 3986, 66}};
  for (const Known& known : all) {
    const Capture capture = import_capture(shared_data(std::string("traces/") + known.file));
    const CaptureStats stats = capture_stats(capture);
    constexpr double rounding_us = 0.01;  // the description was computed with doubles
    EXPECT_EQ(stats.kernels.launches, known.kernels) << known.file;
    EXPECT_EQ(stats.kernels.time_ns, std::llround(known.time_us * 1e3)) << known.file;
    EXPECT_NEAR(static_cast<double>(stats.span_ns) * 1e-3, known.span_us, rounding_us)
        << known.file;
    if (known.busy_us > 0.0) {
      EXPECT_NEAR(static_cast<double>(stats.busy_ns) * 1e-3, known.busy_us, rounding_us)
          << known.file;
    }
    EXPECT_EQ(stats.names, known.names) << known.file;
    EXPECT_EQ(stats.copies.launches, known.copies) << known.file;
    EXPECT_EQ(stats.memsets.launches, known.memsets) << known.file;
    EXPECT_EQ(stats.launched_in_file, known.launched) << known.file;
    EXPECT_EQ(stats.collectives.launches, known.collectives) << known.file;
  }
}

TEST_F(Import, ChakraInItsThreeForms) {
  // Three nodes, the last two on the device, in the feeder's JSON.
  const Capture feeder = import_capture(file("f.json", R"json({"workload_graph": [
    {"Id": 4, "Name": "aten::relu_backward(0)", "NodeType": 4, "runtime": 9, "data_deps": [], "is_cpu_op": true},
    {"Id": 6, "Name": "gemm", "NodeType": 4, "runtime": 30, "data_deps": [4], "is_cpu_op": false},
    {"Id": 7, "Name": "ncclAllReduce", "NodeType": 7, "runtime": 5, "data_deps": [6], "is_cpu_op": false}]})json"));
  ASSERT_EQ(feeder.launches.size(), 2U);
  EXPECT_EQ(feeder.kernels[0].pass, Pass::backward);
  EXPECT_EQ(feeder.launches[1].start_ns, 30'000);
  EXPECT_EQ(feeder.kernels[1].kind, KernelClass::communication);

  // The same as protobuf, by hand: tag, length or number.
  const auto field = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
           bytes;
  };
  const auto number = [](int field_number, int value) {
    return std::string(1, static_cast<char>(field_number << 3)) + static_cast<char>(value);
  };
  const auto delimited = [](const std::string& message) {
    return std::string(1, static_cast<char>(message.size())) + message;
  };
  const auto attribute = [&](const std::string& name, int kind, int value) {
    const int tag = kind << 3;  // two bytes from 128 on
    const std::string tag_bytes = tag < 128 ? std::string(1, static_cast<char>(tag))
                                            : std::string{static_cast<char>((tag & 0x7f) | 0x80),
                                                          static_cast<char>(tag >> 7)};
    return field(10, field(1, name) + tag_bytes + static_cast<char>(value));
  };
  const std::string et =
      delimited(field(1, "0.0.4")) +
      delimited(number(1, 4) + field(2, "aten::relu_backward(0)") + number(3, 4) +
                attribute("is_cpu_op", 27, 1)) +
      delimited(number(1, 6) + field(2, "gemm") + number(3, 4) + field(5, "\x04") + number(7, 30) +
                attribute("is_cpu_op", 27, 0) + attribute("tid", 13, 7)) +
      delimited(number(1, 7) + field(2, "ncclAllReduce") + number(3, 7) + number(7, 5) +
                attribute("is_cpu_op", 27, 0) + attribute("tid", 9, 14) +
                attribute("comm_size", 9, 100));
  const Capture protobuf = import_capture(file("p.et", et));
  ASSERT_EQ(protobuf.launches.size(), 2U);
  EXPECT_EQ(capture_stats(protobuf).kernels.time_ns, 35'000);
  EXPECT_EQ(protobuf.streams.size(), 2U);
  EXPECT_FALSE(protobuf.kernels[0].dram_bytes);
  EXPECT_EQ(protobuf.kernels[1].dram_bytes, 200.0);  // a message of 100, read and written
  EXPECT_EQ(protobuf.kernels[1].work_source, WorkSource::derived);
  EXPECT_FALSE(protobuf.kernels[1].collective);  // of how many ranks is not said
  EXPECT_EQ(protobuf.kernels[index(protobuf.launches[0].kernel)].pass, Pass::backward);
  const auto cut = file("q.et", et.substr(0, et.size() - 3));
  expect_error<DataError>([&] { (void)import_capture(cut); }, "the message ends early");
  EXPECT_EQ(import_capture(cut, {.partial = true}).launches.size(), 1U);

  // The host's JSON: shapes, no times. A view does nothing, a wrapper is not counted twice.
  const Capture host =
      import_capture(file("h.json", R"json({"schema": "1.1.0-chakra.0.0.4", "nodes": [
    {"id": 2, "name": "aten::linear", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [[8, 4], [2, 4]],
     "types": ["Tensor(float)", "Tensor(float)"]
  }
  },
    {"id": 3, "name": "aten::t", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [[2, 4]], "types": ["Tensor(float)"]}},
    {"id": 4, "name": "aten::mm", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [[8, 4], [4, 2]],
     "types": ["Tensor(float)", "Tensor(float)"]}},
    {"id": 5, "name": "autograd::engine::evaluate_function: MmBackward0", "ctrl_deps": 1, "inputs": {"values": [],
     "shapes": [], "types": []}},
    {"id": 6, "name": "aten::mm", "ctrl_deps": 5, "inputs": {"values": [], "shapes": [[4, 8], [8, 2]],
     "types": ["Tensor(float)", "Tensor(float)"]}},
    {"id": 7, "name": "aten::_foreach_add_", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [[[3], [5]], []],
     "types": ["GenericList[Tensor(float),Tensor(float)]", "Int"]}}]})json"));
  const Trace trace = fold(host);
  ASSERT_EQ(trace.kernels.size(), 3U);
  EXPECT_EQ(trace.kernels[0].flops, 2.0 * 8 * 4 * 2);
  EXPECT_FALSE(trace.kernels[0].measured_time_s);
  EXPECT_EQ(trace.kernels[1].pass, Pass::backward);
  EXPECT_EQ(trace.kernels[2].kind, KernelClass::optimizer);
}

TEST(SharedCaptures, StepsPassesAndProducts) {
  RUBATO_NEEDS_SHARED("traces");
  const Capture resnet = import_capture(shared_data("traces/kineto_a100_ddp2_resnet.json.gz"));
  const CaptureStats stats = capture_stats(resnet);
  for (const LaunchSums& one : stats.by_step) EXPECT_EQ(one.launches, 900U);
  const auto pass = [&](Pass p) { return stats.by_pass[static_cast<std::size_t>(p)].launches; };
  EXPECT_EQ(pass(Pass::forward), 879U);
  EXPECT_EQ(pass(Pass::backward), 1794U);
  EXPECT_EQ(pass(Pass::optimizer), 27U);

  const Capture qwen = import_capture(shared_data("traces/kineto_h100_qwen_fwd.json.gz"));
  EXPECT_EQ(capture_stats(qwen).by_step.at(0).launches, 1029U);
  double product_flops = 0.0;
  std::uint64_t products = 0;
  for (const CapturedLaunch& launch : qwen.launches) {
    const Kernel& kernel = qwen.kernels[index(launch.kernel)];
    if (!kernel.gemm) continue;
    ++products;
    product_flops += *kernel.flops;
  }
  EXPECT_EQ(products, 96U + 72U + 1U);
  EXPECT_DOUBLE_EQ(product_flops, 5.514536717248e12);
  const Trace folded = fold(qwen);
  EXPECT_TRUE(
      std::ranges::any_of(folded.segments, [](const Segment& s) { return s.repeat == 24; }));
}

TEST(SharedCaptures, Chakra) {
  RUBATO_NEEDS_SHARED("traces");
  for (const char* name : {"chakra_resnet_rank0.et.gz", "chakra_resnet_rank0.json.gz"}) {
    const Capture capture = import_capture(shared_data(std::string("traces/") + name));
    const CaptureStats stats = capture_stats(capture);
    EXPECT_EQ(capture.launches.size(), 1216U) << name;
    EXPECT_EQ(stats.collectives.launches, 7U) << name;
    EXPECT_EQ(stats.collectives.time_ns, 36'715'000) << name;
    EXPECT_EQ(stats.kernels.time_ns + stats.copies.time_ns, 329'543'000) << name;
  }
  const Capture gpt2 = import_capture(shared_data("traces/chakra_host_gpt2_train.json.gz"));
  double flops[2] = {0.0, 0.0};
  std::uint64_t products[2] = {0, 0};
  for (const CapturedLaunch& launch : gpt2.launches) {
    const Kernel& kernel = gpt2.kernels[index(launch.kernel)];
    if (!kernel.gemm) continue;
    const std::size_t backward = kernel.pass == Pass::backward ? 1 : 0;
    flops[backward] += *kernel.flops;
    ++products[backward];
  }
  EXPECT_EQ(products[0], 144U + 72U + 1U);
  EXPECT_EQ(products[1], 290U + 144U);
  EXPECT_DOUBLE_EQ(flops[0], 724775731200.0 + 48318382080.0 + 65872855040.0);
  EXPECT_DOUBLE_EQ(flops[1], 1581297172480.0 + 96636764160.0);
  EXPECT_EQ(fold(gpt2).segments.front().repeat, 36U);
}

}  // namespace
}  // namespace rubato
