#include "traces/import/readers.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/captures.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/operator_work.hpp"

namespace rubato {
namespace {

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

// Bytes of the places that indices name, read and written once; of a reduction its operand. What
// they are counted in is the whole table, cache or row of logits, which nothing touches.
TEST(OperatorWork, IndexedOperatorsMoveWhatTheirIndicesName) {
  using Dims = std::vector<std::vector<std::uint64_t>>;
  const auto bytes = [](const char* name, Dims dims, std::vector<std::string> values = {}) {
    std::vector<Dtype> dtypes;
    for (const auto& d : dims)  // indices have whole numbers, of no known type
      dtypes.push_back(d == std::vector<std::uint64_t>{6} ? Dtype::unknown : Dtype::fp16);
    return operator_work({name, std::move(dims), std::move(dtypes), std::move(values)}).dram_bytes;
  };
  const double table_rows = 2.0 * 2 * 6 * 40;
  EXPECT_EQ(bytes("aten::embedding", {{900, 40}, {6}}), table_rows);
  EXPECT_EQ(bytes("aten::index_select", {{900, 40}, {}, {6}}, {"", "0", ""}), table_rows);
  EXPECT_EQ(bytes("aten::index_select", {{40, 900}, {}, {6}}, {"", "1", ""}), table_rows);
  EXPECT_EQ(bytes("aten::gather", {{900, 40}, {}, {6}}), 2.0 * 2 * 6);
  EXPECT_EQ(bytes("aten::nll_loss_forward", {{6, 900}, {6}, {}, {}, {}}), 2.0 * 2 * 6);
  EXPECT_EQ(bytes("aten::nll_loss_backward", {{}, {6, 900}, {6}, {}, {}, {}, {}}), 2.0 * 2 * 6);
  EXPECT_EQ(bytes("aten::index_add_", {{900, 40}, {}, {6}, {6, 40}}), table_rows);
  EXPECT_EQ(bytes("_C_cache_ops::reshape_and_cache_flash",
                  {{6, 8, 4}, {6, 8, 4}, {1000, 16, 8, 4}, {1000, 16, 8, 4}, {6}}),
            2.0 * 2 * 2 * 6 * 8 * 4);
  EXPECT_EQ(bytes("aten::sum", {{900, 40}, {}, {}, {}}, {"", "[0]", "True", ""}), 2.0 * 900 * 40);
  EXPECT_EQ(bytes("aten::max", {{900, 40}}), 2.0 * 900 * 40);
  EXPECT_EQ(bytes("aten::max", {{900, 40}, {900, 40}}), 3 * 2.0 * 900 * 40);  // of two, by element
}

// As PyTorch records its operators: where they say that they are causal, and what comes first.
struct AttentionRow {
  const char* name;
  bool heads_first, backward;
  std::vector<std::string> values;  // causal: "?"
  const char* yes = "True";
  const char* no = "False";
};

std::vector<AttentionRow> attention_rows() {
  const std::string n;
  return {
      AttentionRow{"aten::_scaled_dot_product_flash_attention",
                   true,
                   false,
                   {n, n, n, "0.", "?", "False", "0.125"}},
      AttentionRow{"aten::_scaled_dot_product_efficient_attention",
                   true,
                   false,
                   {n, n, n, n, "True", "0.10000000000000001", "?", n}},
      AttentionRow{"aten::_scaled_dot_product_cudnn_attention",
                   true,
                   false,
                   {n, n, n, n, "True", "0.", "?", "False", n}},
      AttentionRow{"aten::_flash_attention_forward",
                   false,
                   false,
                   {n, n, n, n, n, "64", "96", "0.", "?", "False", "0.125"}},
      AttentionRow{"aten::_efficient_attention_forward",
                   false,
                   false,
                   {n, n, n, n, n, n, "64", "96", "0.", "?", "True"},
                   "1",
                   "0"},
      AttentionRow{"flash_attn::_flash_attn_forward", false, false, {n, n, n, "0.", "0.125", "?"}},
      AttentionRow{"aten::_scaled_dot_product_flash_attention_backward",
                   true,
                   true,
                   {n, n, n, n, n, n, n, n, "64", "96", "0.", "?", n, n}},
      AttentionRow{"aten::_scaled_dot_product_efficient_attention_backward",
                   true,
                   true,
                   {n, n, n, n, n, n, n, n, n, "0.", "[True, True, True, False]", "?"}},
      AttentionRow{"aten::_cudnn_attention_backward",
                   true,
                   true,
                   {n, n, n, n, n, n, n, n, n, n, n, "64", "96", "0.", "?", n}},
      AttentionRow{"aten::_efficient_attention_backward",
                   false,
                   true,
                   {n, n, n, n, n, n, n, n, "64", "96", n, "0.", n, n, "?", "False"},
                   "2",
                   "0"},
  };
}

TEST(OperatorWork, AttentionHasAShapeAndCausalHalfOfThePairs) {
  const std::vector<std::uint64_t> query{2, 8, 64, 32}, key{2, 4, 96, 32}, none;
  const std::vector<std::uint64_t> by_length{2, 64, 8, 32}, keys_by_length{2, 96, 4, 32};
  for (const AttentionRow& row : attention_rows()) {
    const auto &q = row.heads_first ? query : by_length,
               &k = row.heads_first ? key : keys_by_length;
    for (const bool causal : {false, true}) {
      OperatorCall call{row.name, {q, k, k}, {}, row.values};
      if (row.backward) call.dims.insert(call.dims.begin(), q);
      std::ranges::replace(call.values, "?", causal ? row.yes : row.no);
      call.dtypes.assign(call.dims.size(), Dtype::bf16);
      const OperatorWork work = operator_work(call);
      EXPECT_EQ(work.attention, (AttentionShape{2, 64, 96, 8, 4, 32, causal})) << row.name;
      // The last query sees all 96 keys, the first one 33.
      const double pairs = causal ? (33.0 + 96.0) / 2.0 * 64.0 : 64.0 * 96.0;
      EXPECT_EQ(work.flops, (row.backward ? 10.0 : 4.0) * 2 * 8 * 32 * pairs) << row.name;
      // Queries and their result, keys and values; and of each the gradient.
      EXPECT_EQ(work.dram_bytes, (row.backward ? 2 : 1) * 2.0 * 2 * 2 * 32 * (8 * 64 + 4 * 96))
          << row.name;
    }
  }
  // Keys of which no whole number of heads shares one.
  const OperatorWork odd = operator_work({"aten::_flash_attention_forward",
                                          {{2, 64, 8, 32}, {2, 96, 3, 32}, {2, 96, 3, 32}},
                                          std::vector<Dtype>(3, Dtype::bf16)});
  EXPECT_TRUE(odd.flops);
  EXPECT_FALSE(odd.attention);
}

TEST(OperatorClasses, FollowFromNames) {
  EXPECT_EQ(class_of_operator("aten::convolution_backward"), KernelClass::gemm);
  EXPECT_EQ(class_of_operator("aten::cudnn_convolution"), KernelClass::gemm);
  EXPECT_EQ(class_of_operator("aten::conv2d"), KernelClass::gemm);
  EXPECT_EQ(class_of_operator("aten::bmm"), KernelClass::gemm_batched);
  EXPECT_EQ(class_of_operator("aten::cudnn_batch_norm"), KernelClass::layernorm);
  EXPECT_EQ(class_of_operator("aten::_convert_indices"), KernelClass::elementwise);
}

using Formats = FileTest;

TEST_F(Formats, AreToldByStructureNotByWords) {
  const auto format = [&](const std::string& text) { return capture_format(file("f.json", text)); };
  const std::string python =
      R"({"ph": "X", "cat": "python_function", "name": "/envs/chakra/a.py: \"workload_graph\": "})";
  EXPECT_EQ(format(R"({"traceEvents": [)" + python + "]}"), CaptureFormat::kineto);
  EXPECT_EQ(format("[" + python + "]"), CaptureFormat::kineto);
  EXPECT_EQ(format(R"({"deviceProperties": [{"nodes": 1, "fwd_start": 2}], "schema": "x",)" +
                   std::string(100'000, ' ') + R"("traceEvents": []})"),
            CaptureFormat::kineto);
  EXPECT_EQ(format(R"({"distributedInfo": {"nodes": 4, "workload_graph": 1}, "traceEvents": []})"),
            CaptureFormat::kineto);
  EXPECT_EQ(format(R"({"nodes": [{"id": 1, "name": "traceEvents"}], "schema": "1.0.1"})"),
            CaptureFormat::chakra_json);
  EXPECT_EQ(format(R"({"workload_graph": []})"), CaptureFormat::chakra_json);
  EXPECT_EQ(format(R"({"iter_1": {"fwd_start": [1]}})"), CaptureFormat::pipeline_passes);
  EXPECT_EQ(format(R"({"schema": 1, "name": "\"kind\": \"capture\""})"),
            CaptureFormat::rubato_json);
  EXPECT_EQ(format(R"({"schema": 1, "kind": "capture"})"), CaptureFormat::rubato_capture);
  expect_error<DataError>([&] { (void)format(R"({"cache": {"a": 1}, "objective": "time"})"); },
                          "its members are cache, objective", "expected a PyTorch profiler trace");
  expect_error<DataError>([&] { (void)format(""); }, "is empty");
  expect_error<DataError>([&] { (void)format("a\nb\n"); }, "a text that begins with 'a'");
  expect_error<DataError>([&] { (void)format("Time (%),Total Time (ns)\n1,2\n"); }, "nsys stats");
}

TEST_F(Formats, TracesOfOtherToolsAreNamed) {
  const auto refused = [&](const std::string& events, std::string_view what,
                           std::string_view hint) {
    const auto path = file("o.json", R"({"traceEvents": [)" + events + "]}");
    expect_error<DataError>([&] { (void)import_capture(path); }, what, hint);
  };
  const std::string process = R"({"ph": "M", "name": "process_name", "args": {"name": ")";
  refused(process + R"(/device:TPU:0"}})", "JAX or TensorFlow", "nsys profile");
  refused(R"({"ph": "X", "name": "fusion", "args": {"hlo_module": "jit_f"}})", "JAX or TensorFlow",
          "nsys profile");
  refused(process + R"(Browser"}})", "processes are Browser", "torch.profiler");
  refused(R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm"})", "there is no device work",
          "ProfilerActivity.CUDA");
  refused(R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 1,
    "pid": 1, "tid": 1})",
          "calls of the GPU's runtime", "CUPTI");
}

// Whoever gave --partial is not told to give it.
TEST_F(Formats, PartialIsNoHintToItself) {
  const auto path = file("p.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel")");
  expect_error<DataError>([&] { (void)import_capture(path); }, "the file ends",
                          "--partial takes what comes before");
  expect_error<DataError>([&] { (void)import_capture(path, {.partial = true}); }, "the file ends",
                          "--partial finds nothing in it that can be used");
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

// Counts of the independent script that describes the published files.
struct Known {
  const char* file;
  std::uint64_t kernels;
  double time_us, span_us, busy_us;
  std::uint64_t names, copies, memsets, launched, collectives;
};

TEST(RealCaptures, HaveTheCountsOfTheirDescription) {
  const Known all[] = {
      {"traces/kineto_a100_ddp2_resnet.json.gz", 2700, 162532.340, 660551.006, 155215.309, 70, 960,
       114, 2700, 21},
      {"traces/kineto_h100_qwen_fwd.json.gz", 1465, 45432.698, 49652.832, 45432.706, 26, 1, 241,
       1029, 0},
      {"traces/nsys_h100_2gpu_dit.sqlite", 4010, 535200.650, 299877.006, 0.0, 27, 1020, 269, 3986,
       66},
      {"h100/eager_item.json.gz", 426, 11006.965, 39319.903, 11006.965, 27, 6, 111, 426, 0},
      {"h100/two_streams.json.gz", 429, 11188.271, 44954.044, 11188.271, 27, 6, 111, 429, 0},
      {"h100/cuda_graph.json.gz", 222, 5285.020, 6136.223, 5285.020, 26, 3, 57, 222, 0},
      {"h100/compiled.json.gz", 291, 6355.668, 31955.287, 6355.668, 44, 3, 33, 291, 0},
      {"h100/et_kineto.json.gz", 142, 3662.387, 41614.312, 3662.387, 27, 1, 37, 142, 0},
      {"h100/gpt3xl_b4.json.gz", 1840, 139941.032, 173253.877, 139941.032, 39, 0, 600, 1840, 0}};
  for (const Known& known : all) {
    const Capture capture = import_capture(captured(known.file));
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

// The same step twice, as an execution trace and by the profiler. cuDNN's attention is four kernels
// forward and four backward, each inside two operators that have the same shapes.
TEST(RealCaptures, OperatorsOfAnExecutionTraceAreThoseOfItsKernels) {
  const auto launches = [](const char* file, KernelClass kind) {
    const CaptureStats stats = capture_stats(import_capture(captured(file)));
    return stats.by_class[static_cast<std::size_t>(kind)].launches;
  };
  for (const KernelClass kind : {KernelClass::attention, KernelClass::gemm, KernelClass::gelu})
    EXPECT_EQ(launches("h100/et.json.gz", kind), launches("h100/et_kineto.json.gz", kind));
}

// Qwen's and GPT's attention is causal; the execution trace writes "true" where the profiler writes
// "True". FLOPs by hand: 4 or 10 for each pair, element and head.
TEST(RealCaptures, KernelsOfAttentionHaveTheirShapes) {
  struct Known {
    const char* file;
    AttentionShape shape;
    std::size_t kernels;
  };
  const AttentionShape gpt{4, 1024, 1024, 16, 16, 64, true};
  for (const Known& known :
       {Known{"traces/kineto_h100_qwen_fwd.json.gz", {16, 559, 559, 16, 16, 64, true}, 1},
        Known{"h100/eager_item.json.gz", gpt, 2}, Known{"h100/et.json.gz", gpt, 2}}) {
    std::size_t kernels = 0;
    for (const Kernel& kernel : import_capture(captured(known.file)).kernels) {
      if (!kernel.attention || kernel.work_source == WorkSource::guessed) continue;
      ++kernels;
      const AttentionShape& a = *kernel.attention;
      EXPECT_EQ(a, known.shape) << known.file;
      const double tokens = static_cast<double>(a.q_tokens);
      const double pairs = tokens * (tokens + 1.0) / 2.0 * static_cast<double>(a.batch * a.heads);
      EXPECT_EQ(kernel.flops, (kernel.pass == Pass::backward ? 10.0 : 4.0) * pairs * 64.0)
          << known.file;
    }
    EXPECT_EQ(kernels, known.kernels) << known.file;
  }
}

TEST(RealCaptures, StepsPassesAndProducts) {
  const Capture resnet = import_capture(captured("traces/kineto_a100_ddp2_resnet.json.gz"));
  const CaptureStats stats = capture_stats(resnet);
  for (const LaunchSums& one : stats.by_step) EXPECT_EQ(one.launches, 900U);
  const auto pass = [&](Pass p) { return stats.by_pass[static_cast<std::size_t>(p)].launches; };
  EXPECT_EQ(pass(Pass::forward), 879U);
  EXPECT_EQ(pass(Pass::backward), 1794U);
  EXPECT_EQ(pass(Pass::optimizer), 27U);

  const Capture qwen = import_capture(captured("traces/kineto_h100_qwen_fwd.json.gz"));
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

TEST(RealCaptures, Chakra) {
  for (const char* name : {"chakra_resnet_rank0.et.gz", "chakra_resnet_rank0.json.gz"}) {
    const Capture capture = import_capture(captured(std::string("traces/") + name));
    const CaptureStats stats = capture_stats(capture);
    EXPECT_EQ(capture.launches.size(), 1216U) << name;
    EXPECT_EQ(stats.collectives.launches, 7U) << name;
    EXPECT_EQ(stats.collectives.time_ns, 36'715'000) << name;
    EXPECT_EQ(stats.kernels.time_ns + stats.copies.time_ns, 329'543'000) << name;
  }
  const Capture gpt2 = import_capture(captured("traces/chakra_host_gpt2_train.json.gz"));
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
  EXPECT_EQ(std::ranges::count(fold(gpt2).segments, 36U, &Segment::repeat), 3);
  // Two in each of 36 layers and one behind them, and as many gradients: they allocate and work.
  EXPECT_EQ(std::ranges::count_if(gpt2.launches,
                                  [&](const CapturedLaunch& launch) {
                                    return gpt2.kernels[index(launch.kernel)].kind ==
                                           KernelClass::layernorm;
                                  }),
            2 * (2 * 36 + 1));
}

}  // namespace
}  // namespace rubato
