#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/text.hpp"
#include "traces/files/trace_csv.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

std::string shipped() { return to_json(load_trace("gpt3-xl")); }

TEST(TraceJson, UnknownWorkStaysUnknown) {
  const std::string text = replaced(shipped(), R"("flops":83886080.0,)", "");
  const Trace trace = parse_trace_json(text, "t.json");
  EXPECT_FALSE(trace.kernels[0].flops);
  EXPECT_EQ(parse_trace_json(to_json(trace), "t.json"), trace);
}

TEST(TraceJson, KeepsWhatItWasCapturedOn) {
  Trace trace = load_trace("gpt3-xl");
  EXPECT_FALSE(trace.captured);
  for (const auto& clock :
       {std::optional<std::string>(), std::optional<std::string>("9501/1470")}) {
    trace.captured = CaptureConditions{"NVIDIA GeForce RTX 3080 Ti", clock};
    EXPECT_EQ(parse_trace_json(to_json(trace), "t.json"), trace);
  }
  expect_error<DataError>(
      [&] {
        (void)parse_trace_json(replaced(to_json(trace), R"("clock":)", R"("clocks":)"), "t.json");
      },
      "captured: unknown key 'clocks'; did you mean 'clock'?");
}

TEST(TraceJson, SaysWhatIsWrongAndWhere) {
  const auto fails = [](const std::string& text, std::string_view what) {
    expect_error<DataError>([&] { (void)parse_trace_json(text, "t.json"); }, what);
  };
  fails(replaced(shipped(), R"("schema": 1)", R"("schema": 2)"),
        "t.json: schema: schema 2 is not supported; expected 1");
  fails(replaced(shipped(), R"("flops":83886080.0)", R"("flops":-1)"),
        "t.json: kernels[0].flops: found -1; expected a number >= 0");
  fails(replaced(shipped(), R"("flops":83886080.0)", R"("flop":1)"),
        "t.json: kernels[0]: unknown key 'flop'; did you mean 'flops'?");
  fails(replaced(shipped(), R"("class":"embedding")", R"("class":"embeding")"),
        "'embeding' is not known; did you mean 'embedding'?");
  fails(replaced(shipped(), R"("name":"01_layernorm")", R"("name":"00_embedding")"),
        "kernel name '00_embedding' occurs twice");
  fails(replaced(shipped(), R"("repeat":24)", R"("repeat":0)"),
        "segment 'layer forward': repeat is 0; expected a number > 0");
  fails(replaced(shipped(), R"(["00_embedding",)", R"(["nobody",)"), "there is no kernel 'nobody'");
  fails(replaced(shipped(), R"(["00_embedding",)", R"([)"),
        "kernel '00_embedding' is never launched");
  fails(shipped().substr(0, 5000), "not valid JSON");
}

TEST(TraceJson, UnknownNamesGetASuggestion) {
  expect_error<UsageError>([] { (void)load_trace("gpt3xl"); },
                           "there is no trace 'gpt3xl'; did you mean 'gpt3-xl'?");
  expect_error<IoError>([] { (void)load_trace("missing.json"); }, "missing.json: cannot open");
}

Trace trace_of(const AttentionShape& shape) {
  Trace trace = load_trace("gpt3-xl");
  trace.kernels[0].attention = shape;
  trace.kernels[1].dtype = Dtype::nvfp4;
  return trace;
}

TEST(TraceFiles, KeepTheShapeOfAttention) {
  for (const bool causal : {true, false}) {
    const Trace trace = trace_of({4, 1, 4096, 32, 8, 128, causal});
    EXPECT_EQ(parse_trace_json(to_json(trace), "t.json"), trace);
    EXPECT_EQ(parse_trace_csv(to_csv(trace), "t.csv").kernels, trace.kernels);
  }
}

TEST(TraceFiles, SayWhatIsWrongWithAShapeOfAttention) {
  const std::string json = to_json(trace_of({4, 1, 4096, 32, 8, 128, true}));
  const auto fails = [&](std::string_view from, std::string_view to, std::string_view what) {
    expect_error<DataError>([&] { (void)parse_trace_json(replaced(json, from, to), "t.json"); },
                            what);
  };
  fails(R"("kv_heads":8)", R"("kv_heads":5)",
        "kernel '00_embedding': kv_heads is 5, which does not divide the 32 heads");
  fails(R"("q_tokens":1)", R"("q_tokens":0)",
        "kernel '00_embedding': a size of attention is 0; expected whole numbers > 0");
  fails(R"("kv_heads":8,)", "", "kernels[0].attention: key 'kv_heads' is missing");
  fails(R"("causal":true)", R"("causal":1)", "kernels[0].attention.causal");
  const std::string csv =
      "segment,repeat,kernel,class,pass,m,n,k,attention_batch,q_tokens,kv_tokens,heads,kv_heads,"
      "head_dim,causal,collective\n"
      "a,1,k0,attention,forward,,,,1,2,3,4,,6,yes,\n"
      "a,1,k1,gemm,forward,5,,6,,,,,,,,\n"
      "a,1,k2,communication,forward,,,,,,,,,,,all_reduce\n";
  for (const std::string_view what :
       {"t.csv:2: kv_heads is ''; expected a whole number > 0",
        "t.csv:2: causal is 'yes'; expected true or false",
        "t.csv:3: n is ''; expected a whole number > 0",
        "t.csv:4: message_bytes is missing; expected the bytes of the collective"})
    expect_error<DataError>([&] { (void)parse_trace_csv(csv, "t.csv"); }, what);
}

// Against a count of the mask, one pair after the other.
TEST(AttendedPairs, AreThoseThatTheMaskLeaves) {
  for (const std::uint64_t q : {1U, 5U, 8U})
    for (const std::uint64_t kv : {1U, 5U, 8U})
      for (const bool causal : {false, true}) {
        double pairs = 0.0;
        for (std::uint64_t i = 0; i < q; ++i)
          for (std::uint64_t j = 0; j < kv; ++j)
            if (!causal || j + q <= i + kv) pairs += 1.0;
        EXPECT_EQ(attended_pairs({1, q, kv, 1, 1, 1, causal}), pairs) << q << ' ' << kv;
      }
}

TEST(TraceCsv, KeepsWorkAndOrder) {
  const Trace trace = load_trace("gpt3-xl");
  const Trace back = parse_trace_csv(to_csv(trace), "gpt3-xl.csv");
  EXPECT_EQ(back.segments, trace.segments);
  EXPECT_EQ(back.kernels, trace.kernels);
}

TEST(TraceCsv, ListsEveryProblemOfAFile) {
  const std::string text =
      "segment,repeat,kernel,class,pass,flops,measured_time_s\n"
      "a,2,k0,gemm,forward,1e9,-0.1\n"
      "a,2,k1,gem,forward,NaN,\n"
      "a,3,k0,gemm,forward,2e9,\n";
  const auto fails = [&](std::string_view what) {
    expect_error<DataError>([&] { (void)parse_trace_csv(text, "t.csv"); }, what);
  };
  fails("t.csv:2: measured_time_s is '-0.1'; expected a number > 0");
  fails("t.csv:3: class 'gem' is not known; did you mean one of gemm, gemm_batched?");
  fails("t.csv:3: flops is 'NaN'; expected a number >= 0");
  fails("t.csv:4: kernel 'k0' has other figures in an earlier row");
  fails("t.csv:4: repeat is 3, but segment 'a' began with 2");
}

RC_GTEST_PROP(TraceReaders, AnyTextIsReadOrRefused, (const std::string& text)) {
  try {
    (void)parse_trace_csv("segment,repeat,kernel,class,pass\n" + text, "t.csv");
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace rubato
