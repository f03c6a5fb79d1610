// Steps of a server: prefill and decode.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

TrainingStep served_step(const char* model, StepPhase phase, std::uint64_t batch,
                         std::uint64_t seq) {
  TrainingStep step{.model = load_model_shape(model), .batch = batch, .seq = seq, .phase = phase};
  step.optimizer = step.sequence_parallel = false;
  return step;
}

Trace served_trace(const TrainingStep& step) { return generate_training_step(step).trace; }

const Kernel& served_kernel(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.kernels, name, &Kernel::name);
  EXPECT_NE(found, trace.kernels.end()) << name;
  return *found;
}

// A prompt of one token is a token behind an empty cache.
TEST(Serving, APromptOfOneTokenIsADecodedOne) {
  for (const char* model : {"llama3-8b", "mixtral-8x7b", "gpt3-xl"}) {
    const Trace prefill = served_trace(served_step(model, StepPhase::prefill, 3, 1)),
                decode = served_trace(served_step(model, StepPhase::decode, 3, 1));
    ASSERT_EQ(prefill.kernels.size(), decode.kernels.size());
    for (std::size_t k = 0; k < prefill.kernels.size(); ++k) {
      EXPECT_EQ(prefill.kernels[k].name, decode.kernels[k].name);
      EXPECT_EQ(prefill.kernels[k].flops, decode.kernels[k].flops);
      EXPECT_EQ(prefill.kernels[k].dram_bytes, decode.kernels[k].dram_bytes);
    }
  }
}

// The layers of a prompt are those of a training step's forward pass, but for the cache.
TEST(Serving, LayersOfAPromptAreThoseOfTheForwardPass) {
  const Trace prefill = served_trace(served_step("llama3-8b", StepPhase::prefill, 2, 512)),
              training = served_trace(served_step("llama3-8b", StepPhase::training, 2, 512));
  std::size_t same = 0;
  for (const Kernel& one : prefill.kernels) {
    if (!one.name.starts_with("fwd_") || one.name == "fwd_cache_write") continue;
    EXPECT_EQ(one.flops, served_kernel(training, one.name).flops) << one.name;
    EXPECT_EQ(one.dram_bytes, served_kernel(training, one.name).dram_bytes) << one.name;
    ++same;
  }
  EXPECT_GT(same, 8U);
}

// Of a token behind T others: 4 T FLOPs for each element of its queries; keys and values of T
// tokens are read once, whatever the number of query heads that share them.
TEST(Serving, AttentionReadsTheCacheOnce) {
  for (const std::uint64_t context : {1024UL, 4096UL}) {
    for (const std::uint64_t batch : {1UL, 16UL}) {
      const Trace trace = served_trace(served_step("llama3-8b", StepPhase::decode, batch, context));
      const Kernel& attention = served_kernel(trace, "fwd_flash_attention");
      const double tokens = static_cast<double>(batch * context);
      EXPECT_EQ(attention.flops, 4.0 * tokens * 32 * 128);
      const double cache = tokens * 2.0 * 8 * 128 * 2.0;
      EXPECT_GT(attention.dram_bytes, cache);
      EXPECT_LT(*attention.dram_bytes, cache + static_cast<double>(batch) * 32 * 128 * 16.0);
      ASSERT_TRUE(attention.attention);
      EXPECT_EQ(attention.attention->q_tokens, 1U);
      EXPECT_EQ(attention.attention->kv_tokens, context);
    }
  }
}

// All weights of a dense model but its token table are read once for a token, and multiplied.
TEST(Serving, ATokenReadsAllWeights) {
  const Trace trace = served_trace(served_step("llama3-8b", StepPhase::decode, 1, 1));
  double flops = 0.0, bytes = 0.0;
  for (const Segment& part : trace.segments) {
    for (const KernelId id : part.launches) {
      const Kernel& one = trace.kernels[index(id)];
      if (one.name.find("_gemm_") == std::string::npos) continue;
      flops += part.repeat * one.flops.value();
      bytes += part.repeat * one.dram_bytes.value();
    }
  }
  const double weights =
      32.0 * (4096.0 * (4096 + 2 * 1024) + 4096.0 * 4096 + 3 * 4096.0 * 14336) + 4096.0 * 128256;
  EXPECT_NEAR(flops, 2.0 * weights, 1e-6 * weights);
  EXPECT_NEAR(bytes, 2.0 * weights, 1e-2 * weights);
}

// One token goes to two of eight experts, many to all.
TEST(Serving, FewTokensGoToFewExperts) {
  const auto up_bytes = [](std::uint64_t batch) {
    const Trace trace = served_trace(served_step("mixtral-8x7b", StepPhase::decode, batch, 1024));
    return *served_kernel(trace, "fwd_gemm_gate_up").dram_bytes;
  };
  const double expert = 2.0 * 4096 * 2 * 14336;  // bytes of the weights
  EXPECT_NEAR(up_bytes(1) / expert, 2.0, 0.01);
  EXPECT_NEAR(up_bytes(4) / expert, 5.0, 0.1);  // 8 (1 - (6/8)^4) = 5.5, rounded to 5
  EXPECT_NEAR(up_bytes(64) / expert, 8.0, 0.1);
}

// Ranks of tensor parallelism have all tokens, and a share of each expert's matrices; what they
// gave is added up once for each token.
TEST(Serving, ExpertsAreSplitAsOtherMatricesAre) {
  for (const std::uint64_t batch : {1UL, 12UL}) {
    TrainingStep step = served_step("mixtral-8x7b", StepPhase::decode, batch, 1024);
    const Trace alone = served_trace(step);
    step.tensor_parallel = 8;
    const Trace split = served_trace(step);
    for (const char* product : {"fwd_gemm_gate_up", "fwd_gemm_down"})
      EXPECT_EQ(8.0 * *served_kernel(split, product).flops, *served_kernel(alone, product).flops);
    EXPECT_EQ(served_kernel(split, "fwd_gemm_router").flops,
              served_kernel(alone, "fwd_gemm_router").flops);
    const Collective& sum = *served_kernel(split, "fwd_all_reduce_down").collective;
    EXPECT_EQ(sum.kind, CollectiveKind::all_reduce);
    EXPECT_EQ(sum.message_bytes, 2.0 * 4096.0 * static_cast<double>(batch));
    EXPECT_EQ(sum.group_size, 8U);
  }
}

TEST(Serving, HoldsWeightsAndCache) {
  const TrainingStep step = served_step("llama3-8b", StepPhase::decode, 32, 4096);
  const MemoryPerRank memory = memory_per_rank(step);
  EXPECT_EQ(memory.gradients + memory.optimizer, 0.0);
  EXPECT_NEAR(memory.parameters, 2.0 * 8.03e9, 1e8);
  const double cache = 32.0 * 32 * 4096 * 2 * 1024 * 2;
  EXPECT_GT(memory.activations, cache);
  EXPECT_LT(memory.activations, 1.01 * cache);
}

// Eager prompts in fp32 are the eager forward pass without dropout.
TEST(Serving, EagerLayersOfAPromptAreThoseOfTheForwardPass) {
  for (const char* model : {"llama3-8b", "gpt3-small"}) {
    TrainingStep step = served_step(model, StepPhase::prefill, 2, 512);
    step.kernels = KernelStyle::eager;
    step.flash_attention = step.dropout = false;
    step.dtype = Dtype::fp32;
    TrainingStep training = step;
    training.phase = StepPhase::training;
    const Trace of_training = served_trace(training), prompt = served_trace(step);
    step.dropout = true;  // of training alone
    EXPECT_EQ(served_trace(step).kernels, prompt.kernels);
    std::vector<Kernel> forward = of_training.kernels;
    std::erase_if(forward, [](const Kernel& one) { return !one.name.starts_with("fwd_"); });
    ASSERT_GT(prompt.kernels.size(), forward.size());
    EXPECT_TRUE(std::ranges::equal(forward, std::span(prompt.kernels).first(forward.size())));
  }
}

// Weights in 16 bits are cast by nobody. Scores of T x T tokens and h heads are written, scaled,
// masked, widened to fp32 for softmax, narrowed and read in bf16: 32 bytes each. The kernel of
// softmax reads fp16 itself.
TEST(Serving, EagerPromptsKeepScoresInMemory) {
  TrainingStep step = served_step("llama3-8b", StepPhase::prefill, 1, 4096);
  step.kernels = KernelStyle::eager;
  step.flash_attention = false;
  const double scores = 32.0 * 4096 * 4096;
  for (const auto& [dtype, bytes] : {std::pair{Dtype::bf16, 32.0}, {Dtype::fp16, 24.0}}) {
    step.dtype = dtype;
    double moved = 0.0;
    for (const Kernel& one : served_trace(step).kernels) {
      EXPECT_FALSE(one.name.ends_with("_weight") && one.name.find("_cast_") != std::string::npos);
      const double of_scores = *one.dram_bytes / scores;
      if (of_scores > 1.5 && one.kind != KernelClass::gemm) moved += of_scores;
    }
    EXPECT_NEAR(moved, bytes, 0.5);
  }
  EXPECT_GT(memory_per_rank(step).activations, 6.0 * scores);
}

// Ranks that share heads and matrices each do what lies between products.
TEST(Serving, EagerRanksDoAllOfTheirNorms) {
  for (const char* model : {"llama3-8b", "gpt3-xl"}) {
    TrainingStep step = served_step(model, StepPhase::prefill, 2, 512);
    step.kernels = KernelStyle::eager;
    step.flash_attention = false;
    const Trace whole = served_trace(step);
    step.tensor_parallel = 2;
    const Trace rank = served_trace(step);
    std::size_t all = 0, half = 0;
    for (const Kernel& one : rank.kernels) {
      if (!one.name.starts_with("fwd_") || one.gemm || one.collective ||
          one.kind == KernelClass::embedding || one.name == "fwd_add_positions")
        continue;
      const double share = *one.dram_bytes / *served_kernel(whole, one.name).dram_bytes;
      const bool between = one.name.starts_with("fwd_norm") || one.name.starts_with("fwd_residual");
      EXPECT_NEAR(share, between ? 1.0 : 0.5, 0.05) << one.name;
      ++(between ? all : half);
    }
    EXPECT_GE(all, 4U);
    EXPECT_GE(half, 4U);
  }
}

TEST(Serving, RefusesWhatNoServerDoes) {
  TrainingStep step = served_step("llama3-8b", StepPhase::decode, 1, 128);
  step.data_parallel = 2;
  expect_error<UsageError>([&] { (void)served_trace(step); }, "phase decode");
  step = served_step("vit-l-16", StepPhase::prefill, 1, 197);
  expect_error<UsageError>([&] { (void)served_trace(step); }, "only of decoders");
  step = served_step("llama3-8b", StepPhase::decode, 1, 128);
  step.kernels = KernelStyle::eager;
  expect_error<UsageError>([&] { (void)served_trace(step); }, "only fused kernels");
}

}  // namespace
}  // namespace rubato
