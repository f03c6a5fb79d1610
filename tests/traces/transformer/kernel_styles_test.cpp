// What kernels say of themselves (shapes of attention, types of products), and what other styles
// launch.

#include <algorithm>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/transformer/steps.hpp"
#include "traces/parallel/rank_work.hpp"
#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

// 4 FLOPs for each pair of query and key and element of a head, 10 backward: of a rank's heads, and
// of its own part of a sequence.
TEST(TrainingStep, AttentionKernelsSayTheirShape) {
  for (const std::string& name : model_shape_names()) {
    for (const std::uint64_t split : {1U, 2U}) {
      TrainingStep step = step_of(name, 3);
      step.recomputation = Recomputation::full;
      if (step.model.kind == ModelKind::decoder)
        step.tensor_parallel = step.context_parallel = split;
      std::size_t seen = 0;
      for (const Kernel& kernel : generate_training_step(step).trace.kernels) {
        EXPECT_EQ(kernel.attention.has_value(), kernel.kind == KernelClass::attention);
        if (!kernel.attention) continue;
        const AttentionShape& a = *kernel.attention;
        const std::uint64_t parts = step.tensor_parallel;
        EXPECT_EQ(a, (AttentionShape{3, step.seq / step.context_parallel,
                                     step.seq / step.context_parallel, step.model.heads / parts,
                                     step.model.kv_heads / parts, step.model.head_width(),
                                     step.model.kind == ModelKind::decoder}))
            << name;
        const double per_pair = kernel.name == "bwd_flash_attention" ? 10.0 : 4.0;
        EXPECT_NEAR(*kernel.flops / (per_pair * 3.0 * attended_pairs(a) *
                                     static_cast<double>(a.heads * a.head_dim)),
                    1.0, 1e-12)
            << name << ' ' << kernel.name;
        ++seen;
      }
      EXPECT_EQ(seen, 3U) << name;
    }
  }
}

// A ring's blocks together are the pairs that the queries of a rank need, and each kernel does the
// FLOPs of its shape.
TEST(AttentionRing, ShapesOfItsBlocksAreThePairsOfARank) {
  TrainingStep step = step_of("llama3-8b", 2, 8192);
  step.context_parallel = 4;
  const RankWork work = rank_work(step, false);
  std::size_t seen = 0;
  for (std::size_t k = 0; k < work.ring.of_other_block.size(); ++k) {
    const Kernel &own = work.kernels[k], &other = work.kernel(work.ring.of_other_block[k]);
    if (!own.attention) continue;
    ++seen;
    EXPECT_EQ(attended_pairs(*own.attention) + 3.0 * attended_pairs(*other.attention),
              needed_pairs(step) / 2.0);
    EXPECT_NEAR(*other.flops / attended_pairs(*other.attention),
                *own.flops / attended_pairs(*own.attention), 1e-9 * *own.flops);
  }
  EXPECT_EQ(seen, 2U);
}

// What products compute in is the only difference between fp32 on CUDA cores and tf32.
TEST(TrainingStep, MatmulPrecisionIsThatOfProducts) {
  TrainingStep step = step_of("llama3-8b", 1);
  step.dtype = Dtype::fp32;
  const Trace highest = generate_training_step(step).trace;
  for (const Kernel& kernel : highest.kernels) EXPECT_EQ(kernel.dtype, Dtype::fp32) << kernel.name;
  for (const MatmulPrecision faster : {MatmulPrecision::high, MatmulPrecision::medium}) {
    step.matmul_precision = faster;
    Trace trace = generate_training_step(step).trace;
    for (Kernel& kernel : trace.kernels) {
      EXPECT_EQ(kernel.dtype, kernel.gemm ? Dtype::tf32 : Dtype::fp32) << kernel.name;
      kernel.dtype = Dtype::fp32;
    }
    EXPECT_EQ(trace.kernels, highest.kernels);
  }
  step.dtype = Dtype::bf16;  // for which it says nothing
  for (const Kernel& kernel : generate_training_step(step).trace.kernels)
    EXPECT_EQ(kernel.dtype, Dtype::bf16) << kernel.name;
}

// The layers' matrices are multiplied in 8 or 4 bits, and every operand is quantised before: of a
// matrix inputs and weights forward, gradients backward. The rest is the step in bf16.
TEST(TrainingStep, SmallTypesAreThoseOfTheLayersMatrices) {
  TrainingStep step = step_of("llama3-8b", 1);
  step.tensor_parallel = 2;
  const Trace bf16 = generate_training_step(step).trace;
  for (const Dtype dtype : {Dtype::fp8, Dtype::nvfp4}) {
    step.dtype = dtype;
    Trace trace = generate_training_step(step).trace;
    double quantised = 0.0;
    for (const Kernel& kernel : trace.kernels)
      if (kernel.label == "quantise") quantised += *kernel.dram_bytes;
    const double h = 4096.0, ffn = 14336.0, qkv = h + 2 * 1024.0;  // each: inputs, outputs
    const double rows = static_cast<double>(step.seq);
    const auto matrix = [&](double in, double out) { return rows * (in + out) + in * out; };
    EXPECT_NEAR(quantised / (2.0 + 2.0 * element_bytes(dtype)) /
                    (matrix(h, qkv / 2) + matrix(h / 2, h) + matrix(h, ffn) + matrix(ffn / 2, h)),
                1.0, 1e-12);
    std::erase_if(trace.kernels, [](const Kernel& kernel) { return kernel.label == "quantise"; });
    ASSERT_EQ(trace.kernels.size(), bf16.kernels.size());
    for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
      const Kernel &small = trace.kernels[k], &large = bf16.kernels[k];
      const bool of_layer = large.gemm && (large.pass == Pass::forward ||
                                           large.name.find("logits") == std::string::npos);
      EXPECT_EQ(small.dtype, of_layer ? dtype : Dtype::bf16) << small.name;
      EXPECT_EQ(small.flops, large.flops) << small.name;
      if (of_layer) {
        EXPECT_LT(*small.dram_bytes, *large.dram_bytes) << small.name;
      } else {
        EXPECT_EQ(small, large) << small.name;
      }
    }
  }
}

// Operators one by one do the products of fused kernels, and move more beside them.
TEST(EagerStep, DoesTheProductsOfTheFusedOne) {
  for (const char* model : {"gpt3-xl", "llama3-8b", "vit-l-16"}) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      TrainingStep step = step_of(model, 2, 1024);
      step.dtype = dtype;
      step.flash_attention = false;
      const Trace fused = generate_training_step(step).trace;
      step.kernels = KernelStyle::eager;
      const Trace eager = generate_training_step(step).trace;
      const auto products = [](const Kernel& kernel) { return kernel.gemm.has_value(); };
      EXPECT_NEAR(flops_of(eager, products) / flops_of(fused, products), 1.0, 1e-12) << model;
      EXPECT_EQ(gradients_of(step), count_parameters(step.model).total) << model;
      const auto bytes = [](const Trace& trace) {
        const auto counts = launch_counts(trace);
        double sum = 0.0;
        for (std::size_t k = 0; k < counts.size(); ++k)
          sum += static_cast<double>(counts[k]) * *trace.kernels[k].dram_bytes;
        return sum;
      };
      EXPECT_GT(bytes(eager), 1.3 * bytes(fused)) << model;
      EXPECT_EQ(std::ranges::any_of(eager.kernels,
                                    [](const Kernel& kernel) { return kernel.label == "cast"; }),
                dtype == Dtype::bf16);
    }
  }
}

// By hand: elements of GPT-2's dropout, and of its GELU written out in Python.
TEST(EagerStep, LaunchesWhatItsOperatorsMove) {
  TrainingStep step = step_of("gpt3-small", 4, 1024);
  step.dtype = Dtype::fp32;
  step.kernels = KernelStyle::eager;
  step.flash_attention = false;
  const double tokens = 4.0 * 1024.0, h = 768.0, scores = 4.0 * 12.0 * 1024.0 * 1024.0;
  const auto moved = [&](std::string_view part) {
    double bytes = 0.0;
    for (const Kernel& kernel : generate_training_step(step).trace.kernels)
      if (kernel.name.find(part) != std::string::npos) bytes += *kernel.dram_bytes;
    return bytes;
  };
  EXPECT_EQ(moved("fwd_gelu"), 18.0 * 4.0 * tokens * 4.0 * h);
  EXPECT_EQ(moved("bwd_gelu"), 28.0 * 4.0 * tokens * 4.0 * h);
  EXPECT_EQ(moved("dropout_scores"), 2.0 * 9.0 * scores);
  EXPECT_EQ(moved("_dropout_0") + moved("_dropout_1") + moved("_dropout_2"),
            6.0 * 9.0 * tokens * h);
  EXPECT_EQ(moved("opt_foreach"), 20.0 * 4.0 * count_parameters(step.model).total);
  step.dropout = false;
  EXPECT_EQ(moved("dropout"), 0.0);
  step.flash_attention = true;
  EXPECT_EQ(moved("softmax"), moved("log_softmax"));
}

TEST(EagerStep, RefusesWhatNobodyLaunchesSo) {
  TrainingStep step = step_of("mixtral-8x7b", 1);
  step.kernels = KernelStyle::eager;
  expect_error<UsageError>([&] { (void)generate_training_step(step); },
                           "eager kernels are of GPT, Llama and ViT models");
  step = step_of("llama3-8b", 1);
  step.kernels = KernelStyle::eager;
  step.dtype = Dtype::nvfp4;
  expect_error<UsageError>([&] { (void)generate_training_step(step); },
                           "dtype nvfp4: only fused kernels");
}

}  // namespace
}  // namespace rubato
