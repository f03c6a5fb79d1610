// Steps of parallel training of models beyond GPT, beside closed forms and the compact trace.

#include <algorithm>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/parallel_input.hpp"
#include "tests/traces/transformer/steps.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {
namespace {

constexpr double bf16 = 2.0;

// Four layers of a shipped model, 2 sequences of at most 512 tokens, no optimizer.
ParallelStepInput input_of(std::string_view model, double bus_gbs = usual) {
  ParallelStepInput input = parallel_input(bus_gbs);
  input.shape = step_of(model, 2, 512);
  input.shape.model.layers = 4;
  input.shape.optimizer = false;
  return input;
}

double flops_of(const ParallelStep& step, std::optional<KernelClass> only = {}) {
  double sum = 0.0;
  for (const Capture& stage : step.stages)
    for (const CapturedLaunch& launch : stage.launches) {
      const Kernel& kernel = stage.kernels[index(launch.kernel)];
      if (!only || kernel.kind == *only) sum += kernel.flops.value_or(0.0);
    }
  return sum;
}

double compact_flops(const TrainingStep& step) {
  return flops_of(generate_training_step(step).trace, [](const Kernel&) { return true; });
}

// One source of kernels: a graph runs what the compact trace of the same step holds.
TEST(ModelStep, RunsTheCompactTracesKernels) {
  for (const std::string& name : model_shape_names()) {
    for (const auto recomputation :
         {Recomputation::none, Recomputation::selective, Recomputation::full}) {
      ParallelStepInput input = input_of(name);
      input.shape.recomputation = recomputation;
      EXPECT_NEAR(flops_of(parallel_step(input)) / compact_flops(input.shape), 1.0, 1e-12) << name;
    }
  }
}

TEST(ModelStep, RunsThemForEachMicrobatchOnStagesAndTensorRanks) {
  for (const char* name : {"llama3-8b", "mixtral-8x7b", "gpt3-small"}) {
    ParallelStepInput input = input_of(name);
    input.shape.tensor_parallel = 4;
    input.shape.sequence_parallel = input.shape.model.experts > 0;
    input.pipeline = {.stages = 2, .microbatches = 6};
    for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zb_h1,
                            ScheduleKind::interleaved}) {
      input.pipeline.kind = kind;
      input.pipeline.chunks = kind == ScheduleKind::interleaved ? 2 : 1;
      const ParallelStep step = parallel_step(input);
      EXPECT_NEAR(flops_of(step) / (6.0 * compact_flops(input.shape)), 1.0, 1e-12) << name;
      expect_read_as_made(step);
    }
  }
}

// Megatron-LM: 2 all-gathers and 2 reduce-scatters of a layer's activations forward, 4 and 2
// backward, 2 and 2 more where it is run again; at the ends 3 and 2.
TEST(ModelStep, SendsActivationsOfTensorRanks) {
  for (const bool again : {false, true}) {
    ParallelStepInput input = input_of("llama3-8b");
    input.shape.tensor_parallel = 4;
    if (again) input.shape.recomputation = Recomputation::full;
    const double bytes = bf16 * 2.0 * 512.0 * 4096.0, more = again ? 2.0 : 0.0;
    const Capture split = parallel_step(input).stages.front();
    EXPECT_DOUBLE_EQ(sent(split, CollectiveKind::all_gather).bytes,
                     (4.0 * (6.0 + more) + 3.0) * bytes);
    EXPECT_DOUBLE_EQ(sent(split, CollectiveKind::reduce_scatter).bytes,
                     (4.0 * (4.0 + more) + 2.0) * bytes);
    // Without sequence parallelism sums go to all: 2 a pass of a layer, and of the ends.
    input.shape.sequence_parallel = false;
    const Capture whole = parallel_step(input).stages.front();
    EXPECT_EQ(sent(whole, CollectiveKind::all_gather).launches, 0U);
    const double of_loss = 3.0 * 4.0 * 2.0 * 512.0;  // fp32: maximum, sum and logit of each token
    EXPECT_DOUBLE_EQ(sent(whole, CollectiveKind::all_reduce).bytes,
                     (4.0 * (4.0 + more) + 2.0) * bytes + of_loss);
  }
}

TEST(ModelStep, ExposesWhatTheProductsOfTheBackwardPassDoNotCover) {
  for (const double bus_gbs : {fast, usual, 2.0}) {
    ParallelStepInput input = input_of("llama3-8b", bus_gbs);
    input.shape.tensor_parallel = 4;
    const ParallelStep step = parallel_step(input);
    const auto time = [&](std::string_view kernel) { return time_of(step.stages[0], kernel); };
    const auto beside = [&](std::string_view collective, std::string_view product) {
      return std::max(0.0, time(collective) - time(product));
    };
    double of_layer = 0.0;
    for (const char* alone :
         {"fwd_all_gather_qkv", "fwd_reduce_scatter_projection", "fwd_all_gather_gate_up",
          "fwd_reduce_scatter_down", "bwd_all_gather_down", "bwd_all_gather_projection"})
      of_layer += time(alone);
    for (const std::string name : {"qkv", "gate_up"}) {
      of_layer += beside("bwd_all_gather_" + name + "_input", "bwd_gemm_" + name + "_input");
      of_layer += beside("bwd_reduce_scatter_" + name, "bwd_gemm_" + name + "_weight");
    }
    const double ends = time("fwd_reduce_scatter_embedding") + time("loss_all_gather_logits") +
                        time("loss_all_reduce_maxima") + time("loss_all_reduce_sums") +
                        beside("bwd_all_gather_logits_input", "bwd_gemm_logits_input") +
                        beside("bwd_reduce_scatter_logits", "bwd_gemm_logits_weight") +
                        time("bwd_all_gather_embedding");
    EXPECT_NEAR(step.times.exposed_s(), 4.0 * of_layer + ends, 4e-5) << bus_gbs;
    EXPECT_NEAR(step.times.step_s, step.times.compute_s() + step.times.exposed_s(), 4e-5);
  }
}

// In pieces too, but for products of experts.
TEST(ModelStep, CutsProductsIntoPiecesButNotThoseOfExperts) {
  for (const char* name : {"llama3-8b", "mixtral-8x7b"}) {
    ParallelStepInput input = input_of(name);
    input.shape.tensor_parallel = 4;
    input.tensor_overlap.chunks = 4;
    input.shape.data_parallel = input.shape.expert_parallel =
        std::max<std::uint64_t>(input.shape.model.experts, 1);
    const bool experts = input.shape.model.experts > 0;
    const ParallelStep step = parallel_step(input);
    EXPECT_EQ(count_launches(step.stages[0], "fwd_gemm_qkv_of_4"), 16U);
    EXPECT_EQ(count_launches(step.stages[0], "fwd_gemm_down_of_4"), experts ? 0U : 16U);
    EXPECT_NEAR(flops_of(step) / compact_flops(input.shape), 1.0, 1e-12);
  }
}

// Replicas reduce every parameter once; fully sharded, three times the layers', and twice the rest,
// in every microbatch.
TEST(ModelStep, SendsParametersAndGradientsOfReplicas) {
  for (const char* name : {"llama3-8b", "vit-l-16", "dit-xl-2", "gpt3-medium"}) {
    ParallelStepInput input = input_of(name);
    input.shape.data_parallel = 8;
    const ParameterCount count = count_parameters(input.shape.model);
    EXPECT_NEAR(parallel_step(input).times.comm_bytes() / bf16 / count.total, 1.0, 1e-12) << name;
    input.sharding = Sharding::optimizer;
    EXPECT_NEAR(parallel_step(input).times.comm_bytes() / bf16 / 2.0 / count.total, 1.0, 1e-12);
    input.sharding = Sharding::parameters;
    for (const unsigned microbatches : {1U, 3U}) {
      input.pipeline.microbatches = microbatches;
      EXPECT_NEAR(parallel_step(input).times.comm_bytes() / bf16 / microbatches /
                      (2.0 * count.total + 4.0 * count.layer),
                  1.0, 1e-12)
          << name;
    }
  }
}

TEST(ModelStep, ReducesGradientsInFp32AsMegatronDoes) {
  ParallelStepInput input = input_of("llama3-8b");
  input.shape.data_parallel = 8;
  input.sharding = Sharding::optimizer;
  input.shape.fp32_gradients = true;
  const double parameters = count_parameters(input.shape.model).total;
  const Capture stage = parallel_step(input).stages[0];
  EXPECT_NEAR(sent(stage, CollectiveKind::reduce_scatter).bytes / 4.0 / parameters, 1.0, 1e-12);
  EXPECT_NEAR(sent(stage, CollectiveKind::all_gather).bytes / bf16 / parameters, 1.0, 1e-12);
}

// Tokens of a rank's part of the sequences go to two experts each and back, forward and backward;
// the group gathers what came for its experts and sums what they gave. Of 8 experts a rank holds
// a fourth of two, and shares them with the other half of the replicas.
TEST(ModelStep, ExpertsOfTensorRanks) {
  ParallelStepInput input = input_of("mixtral-8x7b");
  input.shape.tensor_parallel = 4;
  input.shape.data_parallel = 8;
  input.shape.expert_parallel = 4;
  const ParallelStep step = parallel_step(input);
  const Capture& stage = step.stages[0];
  const double chosen = 2.0 * 2.0 * 512.0 * 4096.0 * bf16;  // top 2 of the group's tokens
  const Sent moved = sent(stage, CollectiveKind::all_to_all);
  EXPECT_EQ(moved.launches, 4U * 4U);
  EXPECT_DOUBLE_EQ(moved.bytes, 4.0 * 4.0 * chosen / 4.0);
  const auto of = [&](const char* name) -> const Collective& {
    return *std::ranges::find(stage.kernels, name, &Kernel::name)->collective;
  };
  for (const char* name : {"fwd_all_gather_gate_up", "fwd_reduce_scatter_down",
                           "bwd_all_gather_down", "bwd_reduce_scatter_gate_up"}) {
    EXPECT_DOUBLE_EQ(of(name).message_bytes, chosen) << name;
    EXPECT_EQ(of(name).group_size, 4U);
  }
  EXPECT_EQ(of("fwd_all_to_all_dispatch").stride, 4U);
  const ParameterCount count = count_parameters(input.shape.model);
  const double experts = 4.0 * count.layer_experts;
  EXPECT_NEAR(sent(stage, CollectiveKind::all_reduce, "d0_expert_").bytes / bf16,
              experts / 4.0 / 4.0, 1.0);
  EXPECT_NEAR(sent(stage, CollectiveKind::all_reduce, "d0_all").bytes / bf16,
              (count.total - experts) / 4.0, 1.0);
  for (const Kernel& kernel : stage.kernels) {
    if (!kernel.name.starts_with("d0_expert_")) continue;
    EXPECT_EQ(kernel.collective->group_size, 2U);
    EXPECT_EQ(kernel.collective->stride, 16U);
  }
  expect_read_as_made(step);
}

// Sharded parameters of experts are gathered by the ranks that hold the same ones.
TEST(ModelStep, ShardsExpertsOverTheRanksThatShareThem) {
  ParallelStepInput input = input_of("mixtral-8x7b");
  input.shape.data_parallel = 8;
  input.shape.expert_parallel = 2;
  input.sharding = Sharding::parameters;
  const Capture stage = parallel_step(input).stages[0];
  const ParameterCount count = count_parameters(input.shape.model);
  EXPECT_NEAR(sent(stage, CollectiveKind::all_gather, "f1_all_gather_layer_experts").bytes / bf16,
              2.0 * 4.0 * count.layer_experts / 2.0, 1.0);
  EXPECT_NEAR(
      sent(stage, CollectiveKind::reduce_scatter, "f2_reduce_scatter_layer_experts").bytes / bf16,
      4.0 * count.layer_experts / 2.0, 1.0);
}

// With flash attention that skips what is masked: an early and a late piece of the sequence on each
// rank make all of them work alike, and together as much as one does alone. Keys and values are
// those of the shared heads.
TEST(ModelStep, RingsShareFlashAttention) {
  for (const auto recomputation : {Recomputation::none, Recomputation::full}) {
    ParallelStepInput input = input_of("llama3-8b");
    input.shape.recomputation = recomputation;
    const double alone = flops_of(parallel_step(input), KernelClass::attention);
    input.shape.context_parallel = 4;
    const ParallelStep step = parallel_step(input);
    EXPECT_NEAR(4.0 * flops_of(step, KernelClass::attention) / alone, 1.0, 1e-12);
    const std::size_t runs = recomputation == Recomputation::none ? 1 : 2;
    EXPECT_EQ(count_launches(step.stages[0], "r0_send_kv"), 4U * (runs + 1U) * 3U);
    EXPECT_EQ(count_launches(step.stages[0], "r1_send_dkv"), 4U * 4U);
    EXPECT_EQ(count_launches(step.stages[0], "bwd_flash_attention"), 4U);
    EXPECT_EQ(count_launches(step.stages[0], "bwd_flash_attention_other_block"), 4U * 3U);
    const double block = bf16 * 2.0 * (2.0 * 512.0 / 4.0) * 1024.0;
    EXPECT_DOUBLE_EQ(sent(step.stages[0], CollectiveKind::send_recv).bytes,
                     4.0 * (3.0 * static_cast<double>(runs + 1) + 4.0) * block);
    EXPECT_NEAR(sent(step.stages[0], CollectiveKind::all_reduce).bytes / bf16,
                count_parameters(input.shape.model).total, 1.0);
    expect_read_as_made(step);
  }
}

// First and last stage each have a gradient of a token table that is the head too, and add them up
// behind those of their replicas.
TEST(ModelStep, SumsTiedTablesOfTheEnds) {
  ParallelStepInput input = input_of("gpt3-medium", 5.0);
  input.shape.tensor_parallel = 2;
  input.shape.data_parallel = 2;
  input.shape.optimizer = true;
  input.pipeline = {.stages = 4, .microbatches = 4};
  for (const auto kernels : {KernelStyle::fused, KernelStyle::llm_c}) {
    input.shape.kernels = kernels;
    const ParallelStep step = parallel_step(input);
    const double rows = kernels == KernelStyle::llm_c ? 50304.0 : 50257.0;
    const double table = rows * 1024.0 / 2.0;
    double reduced = 0.0;
    for (std::size_t s = 0; s < 4; ++s) {
      const Capture& stage = step.stages[s];
      const Sent tables = sent(stage, CollectiveKind::all_reduce, "p2_");
      EXPECT_EQ(tables.launches, s == 0 || s == 3 ? 1U : 0U);
      EXPECT_DOUBLE_EQ(tables.bytes, s == 0 || s == 3 ? bf16 * table : 0.0);
      reduced += sent(stage, CollectiveKind::all_reduce, "d0_").bytes / bf16;
      std::int64_t summed_ns = 0, replicas_ns = 0, update_ns = 0;
      for (const CapturedLaunch& launch : stage.launches) {
        const Kernel& kernel = stage.kernels[index(launch.kernel)];
        if (kernel.name == "p2_all_reduce_tables") {
          summed_ns = launch.end_ns();
          EXPECT_GE(launch.start_ns, replicas_ns);
        }
        if (kernel.name.starts_with("d0_")) replicas_ns = launch.end_ns();
        if (kernel.kind == KernelClass::optimizer) update_ns = launch.start_ns;
      }
      EXPECT_GE(update_ns, summed_ns);
    }
    const double parameters = kernels == KernelStyle::llm_c
                                  ? 2.0 * parameters_per_rank(input.shape)
                                  : count_parameters(input.shape.model).total;
    EXPECT_NEAR(reduced, parameters / 2.0 + table, 1.0);
    expect_read_as_made(step);
  }
  input.shape.kernels = KernelStyle::fused;
  input.shape.model.tied_embeddings = false;
  const ParallelStep apart = parallel_step(input);
  EXPECT_EQ(count_launches(apart.stages[0], "p2_all_reduce_tables"), 0U);
}

// Megatron-LM: buckets of 40 million elements or more on the first stage, one on each other.
TEST(ModelStep, FillsMegatronsBuckets) {
  ParallelStepInput input = input_of("llama3-8b");
  input.bucketing = Bucketing::megatron;
  input.shape.data_parallel = 8;
  input.pipeline = {.kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 4, .chunks = 2};
  const ParallelStep step = parallel_step(input);
  // A layer: 58.7 M (down), 117.4 M (gate and up), 16.8 + 25.2 M (attention), norms between.
  EXPECT_EQ(sent(step.stages[0], CollectiveKind::all_reduce, "d0_").launches, 1U + 4U);
  EXPECT_EQ(sent(step.stages[1], CollectiveKind::all_reduce, "d0_").launches, 2U);
  EXPECT_NEAR((sent(step.stages[0], CollectiveKind::all_reduce, "d0_").bytes +
               sent(step.stages[1], CollectiveKind::all_reduce, "d0_").bytes) /
                  bf16 / count_parameters(input.shape.model).total,
              1.0, 1e-12);
}

TEST(ModelStep, FillsMegatronsBucketsOfExpertsByTheDenseRanks) {
  ParallelStepInput input = input_of("mixtral-8x7b");
  input.bucketing = Bucketing::megatron;
  input.shape.data_parallel = 64;  // 64 million; by the 8 ranks of an expert 8 buckets of 40
  input.shape.expert_parallel = 8;
  EXPECT_EQ(sent(parallel_step(input).stages[0], CollectiveKind::all_reduce, "d0_e").launches, 4U);
}

// Copies of heads of keys and values are summed once their gradients are complete.
TEST(ModelStep, SumsCopiesOfHeadsInTheLastMicrobatch) {
  ParallelStepInput input = input_of("llama3-8b");
  input.shape.tensor_parallel = 16;
  for (const auto kind : {ScheduleKind::one_f_one_b, ScheduleKind::zb_h1}) {
    input.pipeline = {.kind = kind, .stages = 2, .microbatches = 4};
    const ParallelStep step = parallel_step(input);
    EXPECT_EQ(count_launches(step.stages[0], "bwd_all_reduce_kv_copies"), 2U);
  }
}

// What is accumulated is read again, and cleared once.
TEST(ModelStep, AddsUpGradientsOfMicrobatches) {
  ParallelStepInput input = input_of("mixtral-8x7b");
  input.shape.optimizer = true;
  const auto bytes_of = [&](const char* name) {
    const Capture stage = parallel_step(input).stages[0];
    return *std::ranges::find(stage.kernels, name, &Kernel::name)->dram_bytes;
  };
  const double product = bytes_of("bwd_gemm_qkv_weight"), expert = bytes_of("bwd_gemm_down_weight");
  input.pipeline.microbatches = 2;
  EXPECT_DOUBLE_EQ(bytes_of("bwd_gemm_qkv_weight") - product, bf16 * 4096.0 * 6144.0);
  EXPECT_DOUBLE_EQ(bytes_of("bwd_gemm_down_weight") - expert, bf16 * 8.0 * 4096.0 * 14336.0);
  EXPECT_EQ(count_launches(parallel_step(input).stages[0], "opt_memset_gradients"), 1U);
}

TEST(ModelStep, RefusesWhatCannotBe) {
  const auto refused = [](const ParallelStepInput& input, std::string_view why) {
    expect_error<UsageError>([&] { (void)parallel_step(input); }, std::string(why));
  };
  ParallelStepInput input = input_of("llama3-8b");
  input.shape.tensor_parallel = 3;
  refused(input, "tp 3 does not divide heads 32");
  input = input_of("llama3-8b");
  input.shape.model.kv_heads = 16;
  input.shape.tensor_parallel = 32;
  input.shape.model.ffn = 14337;
  refused(input, "tp 32 does not divide ffn 14337");
  input = input_of("llama3-8b");
  input.shape.context_parallel = 3;
  refused(input, "cp 3 does not divide seq 512");
  input.shape.context_parallel = 2;
  input.shape.flash_attention = false;
  refused(input, "cp 2 with unfused attention");
  input = input_of("llama3-8b");
  input.shape.batch = 1'000'000'000;
  input.pipeline.microbatches = 1'000;
  refused(input, "FLOP count of 1000 microbatches is ");
  input = input_of("dit-xl-2");
  input.shape.context_parallel = 2;
  refused(input, "cp 2: only sequences of decoders are shared, not of model 'dit-xl-2'");
  input = input_of("llama3-8b");
  input.shape.kernels = KernelStyle::llm_c;
  refused(input, "model 'llama3-8b' is not a GPT");
  input = input_of("gpt3-small");
  input.shape.kernels = KernelStyle::llm_c;
  input.shape.recomputation = Recomputation::full;
  refused(input, "recomputation full: llm.c's kernels make GELU again, no more");
  input.shape.recomputation = Recomputation::none;
  input.shape.fp32_gradients = true;
  refused(input, "gradients in fp32: llm.c's kernels");
  input = input_of("llama3-8b");
  input.pipeline = {.kind = ScheduleKind::early_recompute, .stages = 2, .microbatches = 4};
  input.shape.recomputation = Recomputation::full;
  refused(input, "schedule early-recompute runs layers again in passes of their own");
}

}  // namespace
}  // namespace rubato
