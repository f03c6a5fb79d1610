#include "traces/transformer/training_step.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"
#include "traces/files/trace_csv.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {
namespace {

double total_flops(const Trace& trace, bool gemms_only) {
  const auto counts = launch_counts(trace);
  double flops = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (gemms_only && !trace.kernels[i].gemm) continue;
    flops += static_cast<double>(counts[i]) * trace.kernels[i].flops.value_or(0.0);
  }
  return flops;
}

TEST(GptTrace, HasThePublishedKernelsInOrder) {
  const Trace trace = generate_training_step(gpt_preset("gpt3-xl")).trace;
  ASSERT_EQ(trace.kernels.size(), 46U);
  EXPECT_EQ(trace.kernels[2].label, "GEMM");
  EXPECT_EQ(trace.kernels[45].label, "bwd WTE");
  // Kernels 2-13 and 19-43 run once per layer.
  const auto counts = launch_counts(trace);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const bool per_layer = (k >= 2 && k <= 13) || (k >= 19 && k <= 43);
    EXPECT_EQ(counts[k], per_layer ? 24U : 1U) << k;
  }
}

// 6 N B T for the parameters and 12 L C T B T for attention: Narayanan et al., SC 2021.
TEST(GptTrace, GemmWorkMatchesTheCountPerToken) {
  const TrainingStep shape = gpt_preset("gpt3-xl");
  const double tokens = 40.0 * 1024.0;
  const double expected =
      6.0 * parameters_per_rank(shape) * tokens + 12.0 * 24.0 * 2048.0 * 1024.0 * tokens;
  EXPECT_NEAR(total_flops(generate_training_step(shape).trace, true) / expected, 1.0, 0.002);
}

TEST(GptTrace, WorkOfEachKernelMatchesTheHandCount) {
  const CsvTable table = CsvTable::read(source_dir() / "tests/traces/gpt3xl_work.csv");
  const Trace trace = generate_training_step(gpt_preset("gpt3-xl")).trace;
  ErrorList errors;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    const double flops =
        table.number(k, table.column("flops_b40"), Range::non_negative, errors).value();
    const double bytes =
        table.number(k, table.column("bytes_model_b40"), Range::positive, errors).value();
    EXPECT_DOUBLE_EQ(trace.kernels[k].flops.value(), flops) << trace.kernels[k].name;
    // The hand count takes 28000 distinct tokens where the formula gives 28012.
    EXPECT_NEAR(trace.kernels[k].dram_bytes.value() / bytes, 1.0, k == 45 ? 1e-3 : 1e-12)
        << trace.kernels[k].name;
  }
  errors.throw_if_any();
}

TEST(GptTrace, TheShippedTraceIsWhatTheGeneratorMakes) {
  EXPECT_EQ(to_json(generate_training_step(gpt_preset("gpt3-xl")).trace),
            read_file(source_dir() / "traces/data/gpt3-xl.json"));
}

TEST(GptTrace, TensorParallelismSplitsWorkAndAddsCollectives) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  const Trace whole = generate_training_step(shape).trace;
  shape.tensor_parallel = 4;
  shape.data_parallel = 8;
  const Trace part = generate_training_step(shape).trace;
  EXPECT_NEAR(total_flops(part, true) * 4.0 / total_flops(whole, true), 1.0, 1e-12);
  // Megatron, per layer: 2 gathers and 2 scatters forward; the same and 2 more gathers backward.
  const auto counts = launch_counts(part);
  std::uint64_t tensor = 0, data = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!part.kernels[i].collective) continue;
    (part.kernels[i].collective->group_size == 4 ? tensor : data) += counts[i];
  }
  EXPECT_EQ(tensor, 24U * 10U);
  EXPECT_EQ(data, 24U + 1U);
  const auto layer = std::ranges::find(part.kernels, "d0_all_reduce_layer", &Kernel::name);
  ASSERT_NE(layer, part.kernels.end());
  EXPECT_DOUBLE_EQ(layer->collective->message_bytes,
                   (12.0 * 2048 * 2048 + 13.0 * 2048) / 4.0 * 2.0);
}

TEST(GptTrace, DataParallelRanksLieATensorParallelGroupApart) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.tensor_parallel = 4;
  shape.data_parallel = 8;
  const Trace trace = generate_training_step(shape).trace;
  for (const Kernel& kernel : trace.kernels) {
    if (!kernel.collective) continue;
    EXPECT_EQ(kernel.collective->stride, kernel.collective->group_size == 4 ? 1U : 4U)
        << kernel.name;
  }
  EXPECT_EQ(parse_trace_json(to_json(trace), "t.json"), trace);
  EXPECT_EQ(parse_trace_csv(to_csv(trace), "t.csv").kernels, trace.kernels);
}

TEST(GptTrace, WithoutCollectivesItHasTheSameKernelsAlone) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.tensor_parallel = 4;
  shape.data_parallel = 8;
  Trace with = generate_training_step(shape).trace;
  shape.collectives = false;
  const Trace without = generate_training_step(shape).trace;
  EXPECT_EQ(without.kernels.size(), 46U);
  std::erase_if(with.kernels, [](const Kernel& kernel) { return kernel.collective.has_value(); });
  EXPECT_EQ(without.kernels, with.kernels);
  EXPECT_NE(without.provenance.options.find("collectives=none"), std::string::npos);
}

// What unfused kernels keep (Korthikanti et al.), less the GELU of every layer but one and less
// what dropout keeps.
TEST(GptTrace, ActivationsAreThoseOfUnfusedKernelsLessGelu) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  const double sbh = 40.0 * 1024.0 * 2048.0, scores = 40.0 * 16.0 * 1024.0 * 1024.0;
  const double layer = 34.0 * sbh + 5.0 * scores - 2.0 * sbh - 3.0 * scores - 8.0 * sbh;
  const double ends = 2.0 * 2.0 * sbh + 8.0 * sbh + 2.0 * 40.0 * 1024.0 * 50304.0;
  EXPECT_EQ(memory_per_rank(shape).activations, 24.0 * layer + ends);
  shape.tensor_parallel = 4;
  EXPECT_EQ(memory_per_rank(shape).activations, (24.0 * layer + ends) / 4.0);
  EXPECT_EQ(memory_per_rank(shape).optimizer, 0.0);
  EXPECT_EQ(memory_per_rank(shape).parameters, 2.0 * 1'313'722'368.0 / 4.0);
}

TEST(GptTrace, RefusesShapesThatDoNotDivide) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.tensor_parallel = 3;
  expect_error<UsageError>([&] { (void)generate_training_step(shape).trace; },
                           "tp 3 does not divide heads 16");
  shape = gpt_preset("gpt3-xl");
  shape.batch = 0;
  expect_error<UsageError>([&] { (void)generate_training_step(shape).trace; },
                           "batch is 0; expected a whole number from 1");
  shape = gpt_preset("gpt3-xl");
  shape.dtype = Dtype::fp8;
  expect_error<UsageError>([&] { (void)generate_training_step(shape); },
                           "dtype fp8: only fused kernels");
  expect_error<UsageError>([] { (void)gpt_preset("gpt3-xll"); },
                           "there is no model 'gpt3-xll'; did you mean 'gpt3-xl'?");
}

RC_GTEST_PROP(GptTrace, EveryShapeGivesAValidTraceThatReadsBack, ()) {
  const auto names = gpt_preset_names();
  TrainingStep shape = gpt_preset(names[*rc::gen::inRange<std::size_t>(0, names.size())]);
  shape.batch = *rc::gen::inRange<std::uint64_t>(1, 64);
  shape.seq = 128 * *rc::gen::inRange<std::uint64_t>(1, 16);
  shape.tensor_parallel = *rc::gen::element<std::uint64_t>(1, 2, 4);
  shape.data_parallel = *rc::gen::element<std::uint64_t>(1, 8);
  shape.optimizer = *rc::gen::arbitrary<bool>();
  const Trace trace = generate_training_step(shape).trace;
  RC_ASSERT(parse_trace_json(to_json(trace), "t.json") == trace);
}

}  // namespace
}  // namespace rubato
