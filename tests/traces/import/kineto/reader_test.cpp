// PyTorch profiler traces.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/capture_stats.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

class Kineto : public FileTest {
 protected:
  [[nodiscard]] std::filesystem::path gzipped(const std::string& name, const std::string& text,
                                              std::size_t cut = 0) const {
    const std::filesystem::path path = folder_ / name;
    gzFile out = gzopen(path.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    if (cut > 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - cut);
    return path;
  }
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

TEST_F(Kineto, LinksKernelsToWhatLaunchedThem) {
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
TEST_F(Kineto, TheKindOfGpuIsThatOfTheFileWhateverItsNumber) {
  const std::string kernel = R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 7,
    "ts": 5, "dur": 1, "args": {"device": 2, "stream": 7}})";
  const auto name = [&](const std::string& text) {
    return import_capture(file("device.json", text)).devices.at(0).name;
  };
  EXPECT_EQ(name(trace_of(kernel)), "Some GPU");
  const std::string none = R"({"schemaVersion": 1, "traceEvents": [)" + kernel;
  EXPECT_EQ(name(none + "]}"), "");
  // Where nothing names the GPU, AMD's runtime still tells whose it is.
  EXPECT_EQ(name(none + R"(, {"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel",
    "pid": 9, "tid": 9, "ts": 1, "dur": 1, "args": {"correlation": 1}}]})"),
            "AMD GPU");
}

TEST_F(Kineto, TwoProductsOfAnOperatorShareItsWork) {
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

TEST_F(Kineto, OldFilesNameThingsOtherwise) {
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

TEST_F(Kineto, BadFilesAreToldWithThePlace) {
  const std::string good = trace_of(one_step);
  const auto rejected = [&](const std::filesystem::path& path, std::string_view what,
                            std::string_view hint = {}) {
    expect_error<DataError>([&] { (void)import_capture(path); }, what, hint);
  };
  rejected(file("a.json", good.substr(0, good.size() / 2)), "the file ends", "--partial");
  rejected(file("b.json", good + "x"), "byte " + std::to_string(good.size()));
  rejected(gzipped("c.json.gz", good, 20), "the gzip data end early", "--partial");
  rejected(file("d.json", R"({"traceEvents": []})"), "there is no device work",
           "ProfilerActivity.CUDA");
  rejected(file("run.nsys-rep", "\x01\x02"), "in its own format", "nsys export --type sqlite");
  rejected(file("f.json", trace_of("7")), "expected '{'");
  const auto with = [](const std::string& field) {
    return trace_of(one_step +
                    R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, )" + field +
                    "}");
  };
  rejected(file("g.json", with(R"("ts": "soon", "dur": 1)")), "is not a time in us");
  EXPECT_EQ(import_capture(file("s.json", with(R"("ts": "1300.5", "dur": "2")"))).launches.size(),
            6U);
  EXPECT_EQ(import_capture(file("bom.json", "\xEF\xBB\xBF" + good)).launches.size(), 5U);
  rejected(gzipped("twice.json.gz", "\x1f\x8b" + good), "packed with gzip twice", "gzip -d");
  rejected(file("h.json", with(R"("ts": 5 5, "dur": 1)")), "event at byte");
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

// CUPTI's 0 and 0 mean "not collected"; Kineto's end of what had not ended is -2^63.
TEST_F(Kineto, LaunchesOfUnknownTimeAreLeftOutAndCounted) {
  const std::string base = R"("baseTimeNanoseconds": 1700000000000000000,)";
  for (const char* times :
       {R"("ts": 0, "dur": 0)", R"("ts": 0.0, "dur": 0.0)", R"("ts": -1700000000000000, "dur": 0)",
        R"("ts": 0, "dur": 1700000000000000)", R"("ts": 100, "dur": 9223370336854775.807)",
        R"("ts": -9223372036854775.808, "dur": 3)", R"("ts": NaN, "dur": 1)",
        R"("ts": null, "dur": 1)", R"("ts": 1e99, "dur": 1)", R"("ts": 100, "dur": -100)"}) {
    const std::string kernel = R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, )";
    const Capture capture =
        import_capture(file("t.json", trace_of(one_step + ", " + kernel + times + "}", base)));
    EXPECT_EQ(capture.launches.size(), 5U) << times;
    ASSERT_EQ(capture.left_out.size(), 1U) << times;
    EXPECT_TRUE(capture.left_out[0].starts_with("1 launches ")) << capture.left_out[0];
  }
  const auto none = file("u.json", trace_of(R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0,
    "tid": 7, "ts": null, "dur": 0})"));
  expect_error<DataError>([&] { (void)import_capture(none); }, "none of its 1 launches has a time");
  // A file whose own times begin at 0.
  const Capture from_zero =
      import_capture(file("v.json", trace_of(R"({"ph": "X", "cat": "kernel", "name": "k",
    "pid": 0, "tid": 7, "ts": 0, "dur": 4e-1})")));
  EXPECT_EQ(from_zero.launches[0].duration_ns, 400);
}

TEST_F(Kineto, WhatNothingDependsOnStopsNothing) {
  const auto with = [](const std::string& event) { return trace_of(one_step + ", " + event); };
  const auto left_out = [&](const std::string& event) {
    const Capture capture = import_capture(file("n.json", with(event)));
    EXPECT_EQ(capture.launches.size(), 5U);
    return capture.left_out;
  };
  using Lines = std::vector<std::string>;
  const std::string slice = R"({"ph": "X", "pid": 1, "tid": 1, "ts": 3, "dur": 1, "cat": )";
  EXPECT_EQ(left_out(slice + R"("user_annotation", "name": "C:\data\x.bin"})"),
            (Lines{"1 annotations that cannot be read"}));
  EXPECT_EQ(left_out(slice + R"("cpu_op", "name": "a)" + "\xff" + R"("})"),
            (Lines{"1 operators that cannot be read"}));
  EXPECT_EQ(left_out(slice + R"("python_function", "name": "C:\data"})"), Lines{});
  EXPECT_EQ(left_out(R"({"ph": "M", "name": "process_labels", "args": {"labels": "C:\data"}})"),
            Lines{});
  const std::string unfinished = R"({"ph": "X", "pid": 1, "tid": 1, "ts": 3, "name": "aten::x",
    "dur": 9223370336854775.807, "cat": )";
  EXPECT_EQ(left_out(unfinished + R"("cpu_op"})"),
            (Lines{"1 operators without a start or an end"}));
  EXPECT_EQ(left_out(unfinished + R"("user_annotation"})"),
            (Lines{"1 annotations without a start or an end"}));
  // A kernel is of importance.
  const auto kernel = file("k.json", with(slice + R"("kernel", "name": "C:\data"})"));
  expect_error<DataError>([&] { (void)import_capture(kernel); }, "event at byte", "--partial");
  EXPECT_EQ(import_capture(kernel, {.partial = true}).left_out,
            (Lines{"1 events that cannot be read"}));
}

// Kernels whose names say nothing, but whose arguments or operators do.
TEST_F(Kineto, CollectivesAreKnownByArgumentsAndOperatorsToo) {
  const Capture capture = import_capture(file("c.json", trace_of(R"(
    {"ph": "X", "cat": "cpu_op", "name": "symm_mem::one_shot_all_reduce", "pid": 1, "tid": 1, "ts": 1, "dur": 9,
     "args": {"External id": 3}},
    {"ph": "X", "cat": "kernel", "name": "k_7f3a", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"External id": 3,
     "correlation": 9}},
    {"ph": "X", "cat": "kernel", "name": "k_55aa", "pid": 0, "tid": 7, "ts": 30, "dur": 5, "args": {
     "Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"}},
    {"ph": "X", "cat": "kernel", "name": "k_0000", "pid": 0, "tid": 7, "ts": 40, "dur": 5, "args": {}})")));
  EXPECT_EQ(capture_stats(capture).collectives.launches, 2U);
}

TEST_F(Kineto, HugeNamesAndZipBombsHaveLimits) {
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

}  // namespace
}  // namespace rubato
