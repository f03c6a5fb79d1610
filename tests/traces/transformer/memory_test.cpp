#include "traces/transformer/memory.hpp"

#include <gtest/gtest.h>

#include "tests/traces/transformer/steps.hpp"

namespace rubato {
namespace {

// GPT-3 175B, sequences of 2048, one of them: the example of Korthikanti et al., section 4.
TrainingStep gpt3_175b() {
  TrainingStep step = step_of("gpt3-175b", 1);
  step.flash_attention = false;
  return step;
}
constexpr double sbh = 2048.0 * 12288.0, scores = 96.0 * 2048.0 * 2048.0;  // a s^2 b

TEST(MemoryPerRank, ActivationsAreThoseOfKorthikanti) {
  TrainingStep step = gpt3_175b();
  // s b h (34 + 5 a s / h), less what dropout keeps: two masks of s b h, one of a s^2 b and its
  // output of 2 a s^2 b.
  const double dropout = 2.0 * sbh + 3.0 * scores;
  const double published = 34.0 * sbh + 5.0 * scores;
  EXPECT_EQ(layer_activation_bytes(step) + dropout, published);
  step.tensor_parallel = 8;
  EXPECT_EQ(8.0 * layer_activation_bytes(step) + dropout, published);
  step.recomputation = Recomputation::selective;
  EXPECT_EQ(8.0 * layer_activation_bytes(step) + 2.0 * sbh, 34.0 * sbh);
  step.recomputation = Recomputation::full;
  step.tensor_parallel = 1;
  EXPECT_EQ(layer_activation_bytes(step), 2.0 * sbh);
}

// "Allows for 70 % reduction in memory for GPT-3, 65 % for MT-NLG", section 5.
TEST(MemoryPerRank, SelectiveRecomputationSavesWhatWasPublished) {
  const auto saved = [](TrainingStep step, double dropout_scores) {
    const double tokens = 2048.0 * static_cast<double>(step.model.hidden);
    const double none = layer_activation_bytes(step) + 2.0 * tokens + dropout_scores;
    step.recomputation = Recomputation::selective;
    return 1.0 - (layer_activation_bytes(step) + 2.0 * tokens) / none;
  };
  TrainingStep step = gpt3_175b();
  EXPECT_NEAR(saved(step, 3.0 * scores), 0.70, 0.005);
  step.model.hidden = 20480;
  step.model.heads = step.model.kv_heads = 128;
  step.model.ffn = 4 * 20480;
  EXPECT_NEAR(saved(step, 3.0 * 128.0 * 2048.0 * 2048.0), 0.65, 0.005);
}

TEST(MemoryPerRank, FlashAttentionKeepsOneNumberOfEachRow) {
  TrainingStep step = gpt3_175b();
  step.flash_attention = true;
  EXPECT_EQ(layer_activation_bytes(step), 32.0 * sbh + 4.0 * 2048.0 * 96.0);
}

// ZeRO, arXiv 1910.02054, section 3.1: 16 bytes a parameter; 24 GB for GPT-2 of 1.5 B parameters.
TEST(MemoryPerRank, ModelStatesAreSixteenBytesAParameter) {
  TrainingStep step = step_of("gpt3-xl", 1);
  step.model.layers = 48;
  step.model.hidden = 1600;
  step.model.heads = step.model.kv_heads = 25;
  step.model.ffn = 6400;
  step.model.context = 1024;
  step.seq = 1024;
  const MemoryPerRank memory = memory_per_rank(step);
  EXPECT_NEAR((memory.parameters + memory.gradients + memory.optimizer) * 1e-9, 24.0, 1.0);
  EXPECT_DOUBLE_EQ(memory.optimizer, 6.0 * memory.parameters);
  EXPECT_EQ(memory.gradients, memory.parameters);
  step.dtype = Dtype::fp32;  // no master weights beside them
  EXPECT_DOUBLE_EQ(memory_per_rank(step).optimizer, 2.0 * memory_per_rank(step).parameters);
  step.optimizer = false;
  EXPECT_EQ(memory_per_rank(step).optimizer, 0.0);
}

TEST(MemoryPerRank, OfALlamaByHand) {
  TrainingStep step = step_of("llama3-8b", 2, 4096);
  const double rows = 8192.0, h = 4096.0, f = 14336.0;
  // Input and output of both norms, q, k and v, what attention gives, gate, up and their product.
  const double layer = 2.0 * rows * (4.0 * h + 1.5 * h + h + 3.0 * f) + 4.0 * rows * 32.0;
  EXPECT_EQ(layer_activation_bytes(step), layer);
  const double ends = 2.0 * rows * (2.0 * h + 128256.0);
  EXPECT_EQ(memory_per_rank(step).activations, 32.0 * layer + ends);
  step.recomputation = Recomputation::full;
  EXPECT_EQ(memory_per_rank(step).activations, 32.0 * 2.0 * rows * h + layer + ends);
}

// The layer whose backward pass runs holds what selective recomputation makes again.
TEST(MemoryPerRank, SelectiveRecomputationHoldsTheScoresOfOneLayer) {
  TrainingStep step = gpt3_175b();
  step.recomputation = Recomputation::selective;
  const double ends = 2.0 * (2.0 * sbh + 2048.0 * 50264.0);
  EXPECT_EQ(memory_per_rank(step).activations, 96.0 * 32.0 * sbh + 2.0 * scores + ends);
  step.tensor_parallel = 8;
  const double padded = 2.0 * 2048.0 * (51200.0 - 50264.0);
  EXPECT_EQ(8.0 * memory_per_rank(step).activations,
            96.0 * 32.0 * sbh + 2.0 * scores + ends + padded);
}

TEST(MemoryPerRank, UnfusedAttentionKeepsKeysOfEveryHead) {
  TrainingStep step = step_of("llama3-8b", 1);
  const double flash = layer_activation_bytes(step);
  step.flash_attention = false;
  const double heads = 32.0, rows = 2048.0;
  EXPECT_EQ(layer_activation_bytes(step), flash - 4.0 * rows * heads + 2.0 * heads * rows * rows +
                                              2.0 * 2.0 * rows * (32.0 - 8.0) * 128.0);
}

TEST(MemoryPerRank, OfExpertsAndImagesByHand) {
  const double r = 2048.0, h = 4096.0, f = 14336.0;
  // Each token is with two experts, as it came, gate, up, their product and what they gave.
  EXPECT_EQ(layer_activation_bytes(step_of("mixtral-8x7b", 1)),
            2.0 * (r * (4.0 * h + 1.5 * h + h) + 2.0 * r * (2.0 * h + 3.0 * f) + 8.0 * r) +
                4.0 * r * 32.0);
  // A DiT also keeps what both branches gave, for the gradient of their gates.
  const double image = 256.0 * 1152.0;
  const MemoryPerRank dit = memory_per_rank(step_of("dit-xl-2", 1));
  const double layer = 2.0 * image * (4.0 + 4.0 + 2.0 + 8.0) + 4.0 * 256.0 * 16.0 +
                       2.0 * 7.0 * 1152.0;  // and shifts, scales, gates and what made them
  EXPECT_EQ(dit.activations, 28.0 * layer + 2.0 * (2.0 * image + 2.0 * 32.0 * 32.0 * 4.0));
  const double tokens = 197.0 * 1024.0;
  const MemoryPerRank vit = memory_per_rank(step_of("vit-l-16", 1));
  EXPECT_EQ(vit.activations, 24.0 * (2.0 * tokens * (4.0 + 4.0 + 8.0) + 4.0 * 197.0 * 16.0) +
                                 2.0 * (2.0 * tokens + 1000.0));
}

TEST(MemoryPerRank, DegreesShareWhatTheySplit) {
  TrainingStep step = step_of("mixtral-8x7b", 1);
  const MemoryPerRank whole = memory_per_rank(step);
  EXPECT_EQ(whole.parameters, 2.0 * 46'702'792'704.0);
  step.tensor_parallel = 4;
  EXPECT_EQ(memory_per_rank(step).parameters, whole.parameters / 4.0);
  // But the tokens of experts, which each rank has of all; and 256 tokens that do not exist.
  const double gathered = 32.0 * 2.0 * 2.0 * 2048.0 * 4096.0;
  EXPECT_EQ(memory_per_rank(step).activations,
            (whole.activations - gathered + 2.0 * 2048.0 * 256.0) / 4.0 + gathered);
  step.tensor_parallel = 1;
  step.data_parallel = step.expert_parallel = 8;
  const double experts = 32.0 * 8.0 * 3.0 * 4096.0 * 14336.0;
  EXPECT_EQ(memory_per_rank(step).parameters, 2.0 * (46'702'792'704.0 - experts + experts / 8.0));
}

}  // namespace
}  // namespace rubato
