// What readers share (names, steps, labels), and Kineto files large enough to be read in blocks.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/capture_stats.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// PyTorch says that the operands are fp32; what multiplies them is in the kernel's name.
TEST(CaptureBuilder, ProductsOfTensorCoresInFp32AreTf32) {
  CaptureBuilder builder("made");
  const auto dtype = [&](const char* label, Dtype operands) {
    Kernel kernel;
    kernel.label = label;
    kernel.dtype = operands;
    return builder.capture().kernels[index(builder.kernel(kernel, label))].dtype;
  };
  EXPECT_EQ(dtype("ampere_sgemm_128x64_tn", Dtype::fp32), Dtype::fp32);
  EXPECT_EQ(dtype("cutlass_80_simt_sgemm_128x32", Dtype::fp32), Dtype::fp32);
  EXPECT_EQ(dtype("cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4", Dtype::fp32), Dtype::tf32);
  EXPECT_EQ(dtype("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", Dtype::fp32), Dtype::tf32);
  EXPECT_EQ(dtype("turing_fp16_s1688gemm_fp16_128x128", Dtype::fp16), Dtype::fp16);
  // The same name with other operands is another kernel.
  EXPECT_EQ(dtype("gemm", Dtype::fp16), Dtype::fp16);
  EXPECT_EQ(dtype("gemm", Dtype::bf16), Dtype::bf16);
}

using KinetoBlocks = FileTest;
// Large enough for blocks that are parsed as a whole, and damaged in the middle.
TEST_F(KinetoBlocks, DamageIsToldWhereItIsWhateverTheSizeOfTheFile) {
  std::string events;
  std::size_t damaged_at = 0, damaged_line = 0;
  constexpr int count = 3000, damaged = 2000;
  for (int i = 0; i < count; ++i) {
    if (i == damaged) {
      damaged_at = events.size();
      damaged_line = static_cast<std::size_t>(std::ranges::count(events, '\n'));
    }
    events += fmt::format(
        "{}\n{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k {}\",\n \"pid\": 0, \"tid\": "
        "7, "
        "\"ts\": {}.5, \"dur\": 2, \"args\": {{\"grid\": [{}, 1, 1], \"block\": [32, 1, 1]}}}}",
        i > 0 ? "," : "", i % 7, 10 * i, 1 + i % 3);
  }
  const std::string good = "{\"traceEvents\": [" + events + "]}";
  const std::size_t first = good.find(events);
  EXPECT_EQ(import_capture(file("good.json", good)).launches.size(), 3000U);
  const auto damage = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from, first + damaged_at);
    return text.replace(at, from.size(), to);
  };
  const std::size_t place = first + damaged_at + 2;  // behind comma and line end
  const std::size_t line =
      static_cast<std::size_t>(std::ranges::count(good.substr(0, first), '\n')) + damaged_line + 2;

  // A lost quote turns all that follows inside out.
  const auto quote = file("quote.json", damage("\"kernel\"", "\"kernel"));
  expect_error<DataError>(
      [&] { (void)import_capture(quote); },
      fmt::format("line {}, byte {}: what begins here does not end", line, place),
      "--partial takes what comes before");
  expect_error<DataError>([&] { (void)import_capture(quote); },
                          fmt::format("a quote is missing near byte"));
  const Capture before = import_capture(quote, {.partial = true});
  EXPECT_EQ(before.launches.size(), static_cast<std::size_t>(damaged));

  const auto number = file("number.json", damage("\"ts\": ", "\"ts\": 1x"));
  expect_error<DataError>([&] { (void)import_capture(number); },
                          fmt::format("event at byte {}", place), "--partial leaves such events");
  EXPECT_EQ(import_capture(number, {.partial = true}).launches.size(), count - 1U);
  // Valid JSON, but no time: what comes before in its block is not read twice.
  const auto wrong = file("wrong.json", damage("\"ts\"", "\"TS\""));
  expect_error<DataError>([&] { (void)import_capture(wrong); },
                          fmt::format("event at byte {}: there is no 'ts'", place));
  EXPECT_EQ(import_capture(wrong, {.partial = true}).launches.size(), count - 1U);
}

// Arguments before what they belong to, as other writers may put them.
TEST_F(KinetoBlocks, FieldsOfEventsMayComeInAnyOrder) {
  const Capture capture = import_capture(file(
      "order.json",
      "{\"traceEvents\": [" +
          std::string(
              R"({"args": {"correlation": 4, "stream": 9, "grid": [3, 1, 1], "block": [64, 1, 1], "device": 0},
          "dur": 2, "ts": 5, "tid": 7, "pid": 0, "name": "k", "cat": "kernel", "ph": "X"},
         {"args": {"correlation": 4}, "dur": 1, "ts": 3, "tid": 8, "pid": 8, "name": "cudaLaunchKernel",
          "cat": "cuda_runtime", "ph": "X"})") +
          "]}"));
  ASSERT_EQ(capture.launches.size(), 1U);
  EXPECT_EQ(capture.launches[0].launch_ns, 3000);
  EXPECT_EQ(capture.streams[0].id, 9);
  EXPECT_EQ(capture.kernels[0].launch, (LaunchShape{{3, 1, 1}, {64, 1, 1}}));
}

// Runtimes count the GPUs they may use, files those of the host: numbers need not match.
TEST(NameDevices, OneKindNamesAllSeveralNameByNumber) {
  using Devices = std::vector<CaptureDevice>;
  const auto named = [](std::initializer_list<std::uint32_t> used,
                        const std::vector<NamedDevice>& known) {
    CaptureBuilder builder("x");
    for (const std::uint32_t id : used) (void)builder.stream(id, 7);
    builder.name_devices(known);
    return builder.capture().devices;
  };
  EXPECT_EQ(named({2}, {{0, "A40"}}), (Devices{{2, "A40"}}));
  EXPECT_EQ(named({4, 5}, {{0, "A40"}, {1, "A40"}, {2, ""}}), (Devices{{4, "A40"}, {5, "A40"}}));
  EXPECT_EQ(named({3}, {{std::nullopt, "A40"}}), (Devices{{3, "A40"}}));
  EXPECT_EQ(named({0, 1}, {{1, "H100"}, {0, "A40"}}), (Devices{{0, "A40"}, {1, "H100"}}));
  EXPECT_EQ(named({1, 2}, {{0, "A40"}, {1, "H100"}}), (Devices{{1, "H100"}, {2, ""}}));
  EXPECT_EQ(named({1}, {}), (Devices{{1, ""}}));
}

// A collective that waits for other ranks is longer than all work together.
TEST(Fold, TakesTheStreamThatComputes) {
  CaptureBuilder builder("made");
  Kernel reduce;
  reduce.label = "nccl";
  reduce.kind = KernelClass::communication;
  Kernel product;
  product.label = "gemm";
  product.kind = KernelClass::gemm;
  const KernelId wait = builder.kernel(reduce, "nccl"), work = builder.kernel(product, "gemm");
  builder.launch({wait, builder.stream(0, 20), 0, 1'000'000, {}, {}, Pass::unknown});
  const Capture waiting = CaptureBuilder(builder).finish();
  expect_error<UsageError>([&] { (void)fold(waiting); }, "collectives and copies at most");
  builder.launch({work, builder.stream(0, 7), 0, 10, {}, {}, Pass::unknown});
  const Trace trace = fold(std::move(builder).finish());
  ASSERT_EQ(trace.kernels.size(), 1U);
  EXPECT_EQ(trace.kernels[0].name, "gemm");
}

TEST(StepFinder, IsTheFirstIntervalThatHoldsTheTime) {
  rc::check([] {
    std::vector<StepFinder::Interval> intervals(*rc::gen::inRange<std::size_t>(0, 12));
    for (std::uint32_t i = 0; i < intervals.size(); ++i) {
      const std::int64_t start = *rc::gen::inRange(0, 20);
      intervals[i] = {start, start + *rc::gen::inRange(0, 12), i};
    }
    const StepFinder finder(intervals);
    std::ranges::stable_sort(intervals, {}, &StepFinder::Interval::start_ns);
    for (std::int64_t ts = -1; ts < 35; ++ts) {
      const auto first = std::ranges::find_if(intervals, [&](const StepFinder::Interval& one) {
        return one.start_ns <= ts && ts < one.end_ns;
      });
      RC_ASSERT(finder.at(ts) ==
                (first == intervals.end() ? std::nullopt : std::optional(first->step)));
    }
  });
}

TEST(PassesByLabel, TheNarrowestOpenLabelCounts) {
  rc::check([] {
    std::vector<PassLabel> labels(*rc::gen::inRange<std::size_t>(0, 10));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      // Lengths differ, so that there is one narrowest.
      const std::int64_t start = *rc::gen::inRange(0, 30);
      labels[i] = {start, start + static_cast<std::int64_t>(i) + 1, static_cast<Pass>(i % 6)};
    }
    std::vector<LaunchCall> calls;
    for (std::size_t i = 0; i < 40; ++i) calls.push_back({static_cast<std::int64_t>(i), i});
    const auto passes = passes_by_label(labels, calls, calls.size());
    for (const LaunchCall& call : calls) {
      std::optional<Pass> expected;
      std::int64_t narrowest = 1000;
      for (const PassLabel& label : labels) {
        if (label.start_ns > call.ts_ns || call.ts_ns >= label.end_ns) continue;
        if (label.end_ns - label.start_ns >= narrowest) continue;
        narrowest = label.end_ns - label.start_ns;
        expected = label.pass;
      }
      RC_ASSERT(passes[call.launch] == expected);
    }
  });
}

}  // namespace
}  // namespace rubato
