#include <algorithm>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/parallel_input.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {
namespace {

constexpr double layers = 12.0, hidden = 768.0, tokens = 4.0 * 1024.0;

double flops_of_stage(const Capture& stage, bool attention) {
  double sum = 0.0;
  for (const CapturedLaunch& launch : stage.launches) {
    const Kernel& kernel = stage.kernels[index(launch.kernel)];
    if (kernel.pass == Pass::loss || kernel.kind == KernelClass::communication) continue;
    if (attention == (kernel.kind == KernelClass::gemm_batched)) sum += *kernel.flops;
  }
  return sum;
}

ParallelStepInput on_ring(std::uint32_t ranks, double bus_gbs) {
  ParallelStepInput input = parallel_input(bus_gbs);
  input.shape.context_parallel = ranks;
  return input;
}

// A rank sends its block of keys and values c - 1 times forward and again backward, and the
// gradients of each block c times, so that they are home in the end.
TEST(ContextParallel, SendsBlocksRoundTheRing) {
  const ParallelStep step = parallel_step(on_ring(4, usual));
  EXPECT_EQ(count_launches(step.stages[0], "r0_send_kv"), 2U * 3U * 12U);
  EXPECT_EQ(count_launches(step.stages[0], "r1_send_dkv"), 4U * 12U);
  const double block_bytes = 2.0 * 2.0 * tokens / 4.0 * hidden;
  EXPECT_DOUBLE_EQ(sent(step.stages[0], CollectiveKind::send_recv).bytes,
                   layers * (6.0 + 4.0) * block_bytes);
  // Its ranks share the parameters, and add up their gradients.
  EXPECT_NEAR(sent(step.stages[0], CollectiveKind::all_reduce).bytes / 2.0 /
                  parameters_per_rank(parallel_input(usual).shape),
              1.0, 1e-12);
}

TEST(ContextParallel, SharesTheWork) {
  const Capture one = parallel_step(parallel_input(usual)).stages[0];
  const Capture four = parallel_step(on_ring(4, usual)).stages[0];
  EXPECT_NEAR(flops_of_stage(four, true) * 4.0 / flops_of_stage(one, true), 1.0, 1e-9);
  EXPECT_NEAR(flops_of_stage(four, false) * 4.0 / flops_of_stage(one, false), 1.0, 0.01);
}

// Forward, while one block is worked on the next comes: c - 1 times max(0, communication -
// computation). Backward the same, with gradients that follow each block on a stream of their own.
TEST(ContextParallel, ExposesWhatAttentionDoesNotCover) {
  for (const double bus_gbs : {fast, usual, 2.0}) {
    ParallelStepInput input = on_ring(4, bus_gbs);
    input.shape.batch = 16;
    const ParallelStep step = parallel_step(input);
    const Capture& stage = step.stages[0];
    const auto time = [&](std::string_view kernel) { return time_of(stage, kernel); };
    const double forward_s = time("04_gemm_scores") + time("05_softmax") + time("06_gemm_context");
    const double backward_s = time("34_gemm_dp") + time("35_gemm_dv") + time("36_softmax_bwd") +
                              time("37_gemm_dq") + time("38_gemm_dk");
    const double kv_s = time("r0_send_kv"), dkv_s = time("r1_send_dkv");
    // The first block is merged with nothing.
    double span_s = std::max(forward_s, kv_s) +
                    2.0 * std::max(forward_s + time("r2_merge_blocks"), kv_s) + forward_s +
                    time("r2_merge_blocks");
    double at_s = 0.0, home_s = 0.0;
    for (int round = 0; round < 4; ++round) {
      // Its gradients are added to what has come of that block from the ranks before.
      const double done_s = std::max(at_s + backward_s, home_s) + time("r3_merge_gradients");
      home_s = done_s + dkv_s;
      at_s = round < 3 ? std::max(done_s, (round + 1) * kv_s) : done_s;
    }
    span_s += home_s;
    const double computed_s =
        4.0 * (forward_s + backward_s + time("r3_merge_gradients")) + 3.0 * time("r2_merge_blocks");
    // All that is exposed but the all-reduces at the end.
    const auto last = std::ranges::find_if(
        stage.launches.rbegin(), stage.launches.rend(), [&](const CapturedLaunch& launch) {
          return stage.kernels[index(launch.kernel)].name == "45_wte_bwd";
        });
    const double end_s = static_cast<double>(last->end_ns()) * s_per_ns;
    EXPECT_NEAR((end_s - step.times.compute_s()) / layers, span_s - computed_s,
                0.01 * span_s + 1e-5)
        << bus_gbs;
  }
}

ParallelStepInput with_experts(std::uint32_t expert_ranks, double bus_gbs) {
  ParallelStepInput input = parallel_input(bus_gbs);
  input.shape.data_parallel = 8;
  input.shape.kernels = KernelStyle::fused;
  input.shape.model.biases = false;
  input.shape.model.experts = 8;
  input.shape.model.experts_per_token = 2;
  input.shape.expert_parallel = expert_ranks;
  return input;
}

// Each token goes to two experts and comes back, forward and backward.
TEST(ExpertParallel, DispatchesAndCombinesTokens) {
  const Capture step = parallel_step(with_experts(4, usual)).stages[0];
  const Sent moved = sent(step, CollectiveKind::all_to_all);
  EXPECT_EQ(moved.launches, 4U * 12U);
  EXPECT_DOUBLE_EQ(moved.bytes, layers * 4.0 * 2.0 * 2.0 * tokens * hidden);
  // Waited for: nothing that could run meanwhile depends on none of it.
  const ParallelStep slower = parallel_step(with_experts(4, 5.0));
  EXPECT_GT(slower.times.exposed_s(),
            layers * 4.0 * time_of(slower.stages[0], "fwd_all_to_all_dispatch"));
}

// Ranks of a ring lie a tensor-parallel group apart.
TEST(ContextParallel, RingsLieBesideEachOther) {
  ParallelStepInput input = on_ring(4, usual);
  input.shape.tensor_parallel = 2;
  const Capture step = parallel_step(input).stages[0];
  for (const Kernel& kernel : step.kernels) {
    if (kernel.collective && kernel.collective->kind == CollectiveKind::send_recv) {
      EXPECT_EQ(kernel.collective->stride, 2U) << kernel.name;
    }
  }
}

// Experts are shared by neighbours, whether they share a sequence or not; ranks with the same
// experts lie such a group apart.
TEST(ContextAndExpertParallel, GroupsLieBesideEachOther) {
  ParallelStepInput input = with_experts(8, usual);
  input.shape.data_parallel = 4;
  input.shape.context_parallel = 4;
  const Capture step = parallel_step(input).stages[0];
  std::size_t seen = 0;
  for (const Kernel& kernel : step.kernels) {
    if (!kernel.collective || kernel.collective->kind == CollectiveKind::send_recv) continue;
    const bool exchanges = kernel.collective->kind == CollectiveKind::all_to_all;
    const bool of_experts = kernel.name.starts_with("d0_expert");
    EXPECT_EQ(kernel.collective->stride, of_experts ? 8U : 1U) << kernel.name;
    EXPECT_EQ(kernel.collective->group_size, exchanges ? 8U : (of_experts ? 2U : 16U))
        << kernel.name;
    seen += exchanges || of_experts ? 1U : 0U;
  }
  EXPECT_GE(seen, 5U);
}

double update_bytes(const ParallelStepInput& input, const char* kernel) {
  double bytes = 0.0;
  for (const Capture& stage : parallel_step(input).stages) {
    for (const CapturedLaunch& launch : stage.launches) {
      const Kernel& one = stage.kernels[index(launch.kernel)];
      if (one.name.starts_with(kernel)) bytes += *one.dram_bytes;
    }
  }
  return bytes;
}

// A rank updates the experts it holds; of what ZeRO shards, its part: the ranks that hold the same
// experts share them, all ranks of rings and replicas the rest. What is cleared is all it holds.
TEST(ContextAndExpertParallel, UpdateTheirParameters) {
  ParallelStepInput input = with_experts(4, usual);
  input.shape.optimizer = true;
  input.shape.context_parallel = 2;
  input.pipeline.microbatches = 2;
  const double expert = layers * 8.0 * 8.0 * hidden * hidden;
  const double rest = count_parameters(input.shape.model).total - expert;
  const auto expect_updated = [&](const char* kernel, double bytes, double elements) {
    EXPECT_NEAR(update_bytes(input, kernel) / bytes / elements, 1.0, 1e-9)
        << kernel << name_of(input.sharding);
  };
  const double held = rest + expert / 4.0, part = rest / 16.0 + expert / 4.0 / 4.0;
  expect_updated("opt_memset_gradients", 2.0, held);
  expect_updated("opt_gradient_norm", 2.0, held);
  expect_updated("opt_adamw", 28.0, held);
  input.sharding = Sharding::optimizer;
  expect_updated("opt_memset_gradients", 2.0, held);
  expect_updated("opt_adamw", 28.0, part);
  input.sharding = Sharding::parameters;
  expect_updated("opt_adamw", 28.0, part);

  ParallelStepInput dense = parallel_input(usual);
  dense.shape.optimizer = true;
  ParallelStepInput ring = on_ring(4, usual);
  ring.shape.optimizer = true;
  ring.shape.data_parallel = 2;
  for (const Sharding sharding : {Sharding::optimizer, Sharding::parameters}) {
    ring.sharding = sharding;
    EXPECT_NEAR(update_bytes(ring, "x6_adamw") * 8.0 / update_bytes(dense, "x6_adamw"), 1.0, 1e-9);
  }
}

// Keys and values, and their gradients, are on their way at the same time: beside kernels they are
// hidden once.
TEST(ContextParallel, HidesNoMoreThanKernelsTake) {
  for (const double bus_gbs : {usual, 5.0, 0.5}) {
    const ParallelStepTimes t = parallel_step(on_ring(4, bus_gbs)).times;
    EXPECT_LE(t.hidden_s(), t.compute_s() + 1e-9);
    EXPECT_LE(t.hidden_s() + t.exposed_s(), t.step_s);
    EXPECT_LT(t.hidden_s() + t.exposed_s(), 0.99 * t.comm_s());
  }
}

// The products of tokens do the same work wherever experts are; twice that of a dense layer for two
// experts a token.
TEST(ExpertParallel, SharesTheExpertsAndTheirGradients) {
  const auto ffn_flops = [](const Capture& stage) {
    double sum = 0.0;
    for (const char* name : {"fwd_gemm_up", "fwd_gemm_down", "bwd_gemm_down_input",
                             "bwd_gemm_down_weight", "bwd_gemm_up_input", "bwd_gemm_up_weight"})
      sum += *std::ranges::find(stage.kernels, name, &Kernel::name)->flops;
    return sum;
  };
  ParallelStepInput dense = parallel_input(usual);
  dense.shape.kernels = KernelStyle::fused;
  dense.shape.data_parallel = 8;
  const ParallelStep one = parallel_step(dense), alone = parallel_step(with_experts(1, usual)),
                     shared = parallel_step(with_experts(4, usual));
  EXPECT_NEAR(ffn_flops(alone.stages[0]) / ffn_flops(one.stages[0]), 2.0, 1e-12);
  EXPECT_NEAR(ffn_flops(shared.stages[0]) / ffn_flops(alone.stages[0]), 1.0, 1e-12);
  // Of 8 experts a rank holds 2, and reduces their gradients with one other rank.
  const double expert = 8.0 * hidden * hidden;
  const double rest =
      count_parameters(with_experts(1, usual).shape.model).total - layers * 8.0 * expert;
  double of_experts = 0.0, others = 0.0;
  for (const CapturedLaunch& launch : shared.stages[0].launches) {
    const Kernel& kernel = shared.stages[0].kernels[index(launch.kernel)];
    if (!kernel.name.starts_with("d0_")) continue;
    const bool is_expert = kernel.name.starts_with("d0_expert_");
    (is_expert ? of_experts : others) += kernel.collective->message_bytes;
    EXPECT_EQ(kernel.collective->group_size, is_expert ? 2U : 8U);
    EXPECT_EQ(kernel.collective->stride, is_expert ? 4U : 1U);
  }
  EXPECT_NEAR(of_experts / (2.0 * 2.0 * layers * expert), 1.0, 1e-12);
  EXPECT_NEAR(others / (2.0 * rest), 1.0, 1e-12);
}

TEST(ContextAndExpertParallel, AreReadAsTheGraphsTheyWereMadeAs) {
  ParallelStepInput input = with_experts(2, 5.0);
  input.shape.context_parallel = 2;
  input.pipeline.stages = 2;
  input.pipeline.microbatches = 2;
  const ParallelStep step = parallel_step(input);
  expect_read_as_made(step, 0.001);
}

TEST(ContextAndExpertParallel, RefuseWhatCannotBe) {
  const auto refused = [](const ParallelStepInput& input, std::string_view why) {
    expect_error<UsageError>([&] { (void)parallel_step(input); }, std::string(why));
  };
  refused(on_ring(3, usual), "cp 3 does not divide seq 1024");
  refused(on_ring(0, usual), "cp is 0");
  ParallelStepInput input = parallel_input(usual);
  input.shape.data_parallel = 8;
  input.shape.expert_parallel = 2;
  refused(input, "ep 2: model 'gpt3-small' has no experts");
  input = with_experts(3, usual);
  refused(input, "ep 3 does not divide experts 8");
  input.shape.model.experts_per_token = 9;
  refused(input, "experts_per_token is 9; expected 1 to the 8 experts there are");
  input = with_experts(2, usual);
  input.shape.data_parallel = 3;
  refused(input, "ep 2 does not divide dp 3");
  input.shape.context_parallel = 4;
  input.shape.data_parallel = 1;
  input.shape.expert_parallel = 8;
  refused(input, "ep 8 does not divide dp 1 x cp 4, whose ranks share the experts");
  input.shape.expert_parallel = 0;
  refused(input, "ep is 0");
  input = with_experts(2, usual);
  input.shape.tensor_parallel = 2;
  input.shape.sequence_parallel = false;
  refused(input, "experts with tp 2 and without sequence parallelism");
  input = with_experts(2, usual);
  input.shape.kernels = KernelStyle::llm_c;
  refused(input, "model 'gpt3-small' is not a GPT");
}

}  // namespace
}  // namespace rubato
