// What kernels read and write, tensor by tensor.

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "tests/traces/transformer/steps.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

double bytes_of(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.kernels, name, &Kernel::name);
  return found == trace.kernels.end() ? -1.0 : found->dram_bytes.value();
}

// Tensors of rows x width that are read and written, in 16 bits, and what is in 32.
TEST(KernelBytes, KernelsOfALlamaMoveTheirTensors) {
  const Trace trace = generate_training_step(step_of("llama3-8b", 1)).trace;
  const double r = 2048.0, h = 4096.0, kv = 1024.0, f = 14336.0, v = 128256.0, a = r * h;
  EXPECT_EQ(bytes_of(trace, "fwd_embedding"), 2 * 2 * a + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_norm_1"), 2 * (2 * a + h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_rope"), 2 * 2 * r * (h + kv) + 4 * r * 128);
  EXPECT_EQ(bytes_of(trace, "fwd_residual_norm_2"), 2 * (4 * a + h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_activation"), 2 * 3 * r * f);
  EXPECT_EQ(bytes_of(trace, "loss_cross_entropy"), 2 * 2 * r * v + 8 * r);
  // No residual beside it: reads two, writes one.
  EXPECT_EQ(bytes_of(trace, "bwd_norm_final"), 2 * (3 * a + 2 * h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "bwd_norm_2"), 2 * (4 * a + 2 * h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "bwd_activation"), 2 * 5 * r * f);
  EXPECT_EQ(bytes_of(trace, "bwd_flash_dot"), 2 * 2 * a + 4 * a + 4 * r * 32);
  // Queries, the gradient of the output, 8 heads of keys and of values read; gradients of keys and
  // of values written for all 32 heads; the fp32 sum of the queries' gradient read and written; two
  // fp32 numbers of a row and head read.
  EXPECT_EQ(bytes_of(trace, "bwd_flash_attention"),
            16777216.0 * 4 + 4194304.0 * 2 + 33554432.0 * 2 + 2 * 262144.0);
  EXPECT_EQ(bytes_of(trace, "bwd_sum_keys"), 16777216.0 + 4194304.0);
  EXPECT_EQ(bytes_of(trace, "bwd_sum_values"), 16777216.0 + 4194304.0);
  EXPECT_EQ(bytes_of(trace, "bwd_flash_convert"), 6 * a);
  EXPECT_EQ(bytes_of(trace, "bwd_memset_table"), 2 * v * h);
  EXPECT_EQ(bytes_of(trace, "bwd_gemm_down_weight"), 2 * (f * h + r * h + r * f));
  EXPECT_EQ(bytes_of(trace, "opt_gradient_norm"), 2 * 8'030'261'248.0);
}

TEST(KernelBytes, KernelsOfAGptMoveTheirTensors) {
  TrainingStep step = step_of("gpt3-xl", 2, 1024);
  step.flash_attention = false;
  const Trace trace = generate_training_step(step).trace;
  const double r = 2048.0, h = 2048.0, a = r * h;
  const double square = 2.0 * 16.0 * 1024.0 * 1024.0, half = 2.0 * 16.0 * 1024.0 * 1025.0 / 2.0;
  EXPECT_EQ(bytes_of(trace, "fwd_embedding"), 2 * (2 * a + 1024 * h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_norm_1"), 2 * (2 * a + 2 * h) + 8 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_softmax"), 2 * (half + square));
  EXPECT_EQ(bytes_of(trace, "bwd_softmax"), 2 * (2 * half + square));
  EXPECT_EQ(bytes_of(trace, "fwd_activation"), 2 * 2 * 4 * a);
  EXPECT_EQ(bytes_of(trace, "bwd_activation"), 2 * 3 * 4 * a);
  EXPECT_EQ(bytes_of(trace, "fwd_gemm_up"), 2 * (r * h + 4 * h * h + 4 * a + 4 * h));
  EXPECT_EQ(bytes_of(trace, "bwd_positions"), 2 * (a + 1024 * h));
  EXPECT_EQ(bytes_of(trace, "bwd_memset_table"), -1.0);  // the head's gradient is there already
}

TEST(KernelBytes, KernelsOfExpertsAndImagesMoveTheirTensors) {
  const Trace mixtral = generate_training_step(step_of("mixtral-8x7b", 1)).trace;
  const double r = 2048.0, a = r * 4096.0, f = 14336.0;
  EXPECT_EQ(bytes_of(mixtral, "fwd_permute"), 2 * 3 * a);
  EXPECT_EQ(bytes_of(mixtral, "fwd_router_top_k"), 6 * r * 8);
  EXPECT_EQ(bytes_of(mixtral, "fwd_activation"), 2 * 3 * 2 * r * f);
  EXPECT_EQ(bytes_of(mixtral, "fwd_unpermute"), 2 * 3 * a);
  EXPECT_EQ(bytes_of(mixtral, "bwd_unpermute"), 2 * 5 * a);
  EXPECT_EQ(bytes_of(mixtral, "bwd_permute"), 2 * 3 * a);
  EXPECT_EQ(bytes_of(mixtral, "bwd_router_top_k"), 10 * r * 8);
  EXPECT_EQ(bytes_of(mixtral, "bwd_gemm_router_input"), 2 * (8 * 4096 + 8 * r + 2 * a));
  const Trace dit = generate_training_step(step_of("dit-xl-2", 3)).trace;
  const double condition = 3.0 * 1152.0;
  EXPECT_EQ(bytes_of(dit, "fwd_silu"), 2 * 2 * condition);
  // Of each branch: gradient and output read, gradient written; gradient and normed input read.
  for (const char* branch : {"ffn", "attention"}) {
    EXPECT_EQ(bytes_of(dit, std::string("bwd_gate_") + branch), 3 * 1769472.0);
    EXPECT_EQ(bytes_of(dit, std::string("bwd_shift_scale_") + branch), 2 * 1769472.0);
  }
  EXPECT_EQ(bytes_of(dit, "bwd_norm_final"), 3 * 1769472.0 + 4 * 1152.0 * 2 + 8 * 768.0);
  EXPECT_EQ(bytes_of(dit, "fwd_patches"), 2 * 2 * 3.0 * 32 * 32 * 4);
  EXPECT_EQ(bytes_of(dit, "loss_squares"), 2 * 2.5 * 2 * 3.0 * 32 * 32 * 4);
  const Trace vit = generate_training_step(step_of("vit-l-16", 3)).trace;
  EXPECT_EQ(bytes_of(vit, "fwd_add_positions"), 2 * (2 * 3.0 * 197 + 197) * 1024);
  EXPECT_EQ(bytes_of(vit, "loss_cross_entropy"), 2 * 2 * 3.0 * 1000 + 8 * 3.0);
}

TEST(KernelBytes, AdamWKeepsFp32BesideTheWeights) {
  TrainingStep step = step_of("llama3-8b", 1);
  const double n = 8'030'261'248.0;
  // Both moments and the master weight read and written, gradient read, weight written.
  const Kernel adamw = generate_training_step(step).trace.kernels.back();
  EXPECT_EQ(adamw.name, "opt_adamw");
  EXPECT_DOUBLE_EQ(adamw.dram_bytes.value(), (16.0 + 8.0 + 2.0 + 2.0) * n);
  step.dtype = Dtype::fp32;
  EXPECT_DOUBLE_EQ(generate_training_step(step).trace.kernels.back().dram_bytes.value(),
                   (16.0 + 4.0 + 8.0) * n);
  step.optimizer = false;
  for (const Kernel& kernel : generate_training_step(step).trace.kernels)
    EXPECT_NE(kernel.pass, Pass::optimizer) << kernel.name;
}

// As Megatron-LM: two more bytes wherever a weight's gradient is written, read or reduced.
TEST(KernelBytes, GradientsInFp32TakeTwoMoreBytes) {
  TrainingStep step = step_of("mixtral-8x7b", 1);
  step.data_parallel = 2;
  const double n = count_parameters(step.model).total, h = 4096.0;
  const auto bytes = [&](std::string_view name) {
    return bytes_of(generate_training_step(step).trace, name);
  };
  const std::vector<std::pair<const char*, double>> added{
      {"opt_adamw", 2.0 * n},
      {"opt_gradient_norm", 2.0 * n},
      {"bwd_gemm_qkv_weight", 2.0 * h * 6144.0},
      {"bwd_gemm_down_weight", 2.0 * 8.0 * h * 14336.0},
      {"bwd_gemm_logits_weight", 2.0 * h * 32000.0},
      {"bwd_memset_table", 2.0 * h * 32000.0},
      {"bwd_all_reduce_layer", 2.0 * 2.0 * (h * 6144.0 + h * h + 8.0 * h + 2.0 * h)}};
  std::vector<double> before;
  for (const auto& [name, more] : added) before.push_back(bytes(name));
  step.fp32_gradients = true;
  for (std::size_t i = 0; i < added.size(); ++i)
    EXPECT_DOUBLE_EQ(bytes(added[i].first) - before[i], added[i].second) << added[i].first;
  EXPECT_DOUBLE_EQ(memory_per_rank(step).gradients, 4.0 * n);
  // And the sum of microbatches is read again.
  step.accumulate_gradients = true;
  EXPECT_DOUBLE_EQ(bytes("bwd_gemm_qkv_weight") - before[2], 6.0 * h * 6144.0);
  EXPECT_DOUBLE_EQ(bytes("opt_memset_gradients"), 4.0 * n);
}

// Without sequence parallelism each rank does all of what lies between products, and no more.
TEST(KernelBytes, SequenceParallelismSharesWhatLiesBetweenProducts) {
  TrainingStep step = step_of("llama3-8b", 1);
  step.tensor_parallel = 4;
  const Trace shared = generate_training_step(step).trace;
  step.sequence_parallel = false;
  const Trace whole = generate_training_step(step).trace;
  for (const Kernel& kernel : whole.kernels) {
    if (kernel.collective) continue;
    const bool between =
        kernel.kind == KernelClass::layernorm || kernel.kind == KernelClass::residual_layernorm;
    EXPECT_DOUBLE_EQ(kernel.dram_bytes.value(),
                     (between ? 4.0 : 1.0) * bytes_of(shared, kernel.name))
        << kernel.name;
  }
}

TEST(KernelBytes, GroupedQueriesShrinkKeysAndValues) {
  const auto bytes = [](std::uint64_t kv_heads, std::string_view name) {
    TrainingStep step = step_of("llama3-8b", 1);
    step.model.kv_heads = kv_heads;
    return bytes_of(generate_training_step(step).trace, name);
  };
  const double rows = 2048.0, statistics = 4.0 * rows * 32.0;
  EXPECT_DOUBLE_EQ(bytes(32, "fwd_flash_attention"), 2.0 * 4.0 * rows * 4096.0 + statistics);
  EXPECT_DOUBLE_EQ(bytes(8, "fwd_flash_attention"), 2.0 * 2.5 * rows * 4096.0 + statistics);
  EXPECT_DOUBLE_EQ(bytes(8, "fwd_gemm_qkv"),
                   2.0 * (4096.0 * rows + 4096.0 * 6144.0 + 6144.0 * rows));
}

// 2048 tokens of 4096 in 16 bits are 16 MiB, 2048 fp32 numbers 8 KiB.
TEST(KernelBytes, OfTensorParallelEndsByHand) {
  constexpr double whole = 16777216.0, numbers = 8192.0;
  TrainingStep step = step_of("llama3-8b", 1);
  step.tensor_parallel = 4;
  const Trace trace = generate_training_step(step).trace;
  // Reads the tokens of its part of the table, writes a row for each token of the batch.
  EXPECT_EQ(bytes_of(trace, "fwd_embedding"), whole / 4 + whole + numbers);
  // 128256 tokens padded to 251 x 512, a quarter on each rank: 32128 logits.
  constexpr double logits = 2.0 * 2048 * 32128;
  EXPECT_EQ(bytes_of(trace, "loss_statistics"), logits + 4 * numbers);
  EXPECT_EQ(bytes_of(trace, "loss_cross_entropy"), 2 * logits + 5 * numbers);
  const auto sent = [&](std::string_view name) {
    return std::ranges::find(trace.kernels, name, &Kernel::name)->collective->message_bytes;
  };
  EXPECT_EQ(sent("loss_all_reduce_maxima"), numbers);
  EXPECT_EQ(sent("loss_all_reduce_sums"), 2 * numbers);
  const double distinct = std::round(128256.0 * (1.0 - std::pow(1.0 - 1.0 / 128256.0, 2048.0)));
  EXPECT_DOUBLE_EQ(bytes_of(trace, "bwd_embedding"), whole + 2 * 2 * distinct / 4 * 4096 + numbers);
}

TEST(KernelBytes, LearnedPositionsAreAddedAfterTheScatter) {
  TrainingStep step = step_of("gpt3-xl", 1);
  step.tensor_parallel = 4;
  const Trace trace = generate_training_step(step).trace;
  // 8 MiB each of tokens, of positions, and of their sum; a quarter on each rank.
  EXPECT_EQ(bytes_of(trace, "fwd_add_positions"), 3 * 8388608.0 / 4);
  EXPECT_EQ(bytes_of(trace, "fwd_embedding"), 1.25 * 8388608.0 + 8192.0);
}

TEST(KernelBytes, UnfusedAttentionRepeatsSharedHeads) {
  TrainingStep step = step_of("llama3-8b", 1);
  step.flash_attention = false;
  step.recomputation = Recomputation::selective;
  const Trace trace = generate_training_step(step).trace;
  for (const char* name : {"fwd_repeat_keys", "fwd_repeat_values", "rec_repeat_keys",
                           "rec_repeat_values", "bwd_sum_keys", "bwd_sum_values"})
    EXPECT_EQ(bytes_of(trace, name), 16777216.0 + 4194304.0) << name;
  step.model.kv_heads = 32;
  const Trace plain = generate_training_step(step).trace;
  EXPECT_EQ(bytes_of(plain, "fwd_repeat_keys"), -1.0);
  EXPECT_EQ(bytes_of(plain, "bwd_sum_keys"), -1.0);
}

// Two copies of each token, 32 MiB of all ranks together, are read and written.
TEST(KernelBytes, RanksWithSeveralExpertsSortWhatCame) {
  TrainingStep step = step_of("mixtral-8x7b", 1);
  step.tensor_parallel = 4;
  step.data_parallel = 8;
  const Trace trace = generate_training_step(step).trace;
  for (const char* name :
       {"fwd_sort_dispatched", "fwd_sort_combined", "bwd_sort_combined", "bwd_sort_dispatched"})
    EXPECT_EQ(bytes_of(trace, name), 2 * 2 * 16777216.0) << name;
  step.expert_parallel = 8;
  EXPECT_EQ(bytes_of(generate_training_step(step).trace, "fwd_sort_dispatched"), -1.0);
}

TEST(KernelBytes, DistinctTokensOfSmallVocabularies) {
  EXPECT_EQ(distinct_tokens(10.0, 1.0), 1.0);
  EXPECT_EQ(distinct_tokens(2.0, 2.0), 2.0);  // 1.5, rounded
  EXPECT_EQ(distinct_tokens(1e6, 100.0), 100.0);
}

}  // namespace
}  // namespace rubato
