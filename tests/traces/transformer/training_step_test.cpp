#include "traces/transformer/training_step.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/transformer/steps.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {
namespace {

double all(const Trace& trace) {
  return flops_of(trace, [](const Kernel&) { return true; });
}

// 6 N D: N what a token multiplies with, by hand from the shapes of each model.
struct WorkOfModel {
  const char* model;
  double per_token;
};
constexpr WorkOfModel decoders[] = {
    {"gpt3-175b", 96 * 12.0 * 12288 * 12288 + 50257.0 * 12288},
    {"llama2-7b", 32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 32000.0 * 4096},
    {"llama3-8b", 32 * (2.5 * 4096 * 4096 + 3.0 * 4096 * 14336) + 128256.0 * 4096},
    {"llama3-405b", 126 * (2.125 * 16384 * 16384 + 3.0 * 16384 * 53248) + 128256.0 * 16384},
    {"mixtral-8x7b",
     32 * (2.5 * 4096 * 4096 + 2 * 3.0 * 4096 * 14336 + 8.0 * 4096) + 32000.0 * 4096},
};

TEST(TrainingStep, ProductsAreSixPerParameterAndToken) {
  for (const auto& [model, per_token] : decoders) {
    const TrainingStep step = step_of(model);
    const Trace trace = generate_training_step(step).trace;
    const double unit = per_token * 4.0 * static_cast<double>(step.seq);
    const auto products = [&](auto of_pass) {
      return flops_of(trace, [&](const Kernel& k) { return is_product(k) && of_pass(k); });
    };
    // The vocabulary of GPT-3 is padded by seven.
    EXPECT_NEAR(products(is_forward) / (2.0 * unit), 1.0, 1e-4) << model;
    EXPECT_NEAR(products(is_backward) / (4.0 * unit), 1.0, 1e-4) << model;
  }
}

// Parameters that are looked up rather than multiplied with.
double looked_up(const ModelShape& s) {
  const std::uint64_t table = s.tied_embeddings ? 0 : s.vocab;
  const std::uint64_t positions = s.positions != PositionEncoding::learned ? 0
                                  : s.kind == ModelKind::vit               ? 197
                                                                           : s.context;
  return static_cast<double>((table + positions) * s.hidden);
}

// The whole step, every kernel of it, against 6 N D and attention of N active parameters.
TEST(TrainingStep, WorkOfEveryModelIsSixNDAndAttention) {
  for (const std::string& name : model_shape_names()) {
    const TrainingStep step = step_of(name, 16);
    const Trace trace = generate_training_step(step).trace;
    const double length = static_cast<double>(step.seq);
    const double tokens = 16.0 * length;
    // Three and a half forwards: flash attention makes the scores again in its backward pass.
    const double pairs = step.model.causal() ? (length + 1.0) / 2.0 : length;
    const double attention =
        3.5 * 4.0 * tokens * pairs * static_cast<double>(step.model.hidden * step.model.layers);
    // A DiT's modulation meets images, not tokens.
    const double once = step.model.kind == ModelKind::dit ? 28.0 * 6.0 * 1152.0 * 1152.0 : 0.0;
    const double met = count_parameters(step.model).active - looked_up(step.model) - once;
    const double expected = 6.0 * met * tokens + attention;
    EXPECT_NEAR(all(trace) / expected, 1.0, 0.01) << name;
    EXPECT_NEAR(flops_of(trace, is_attention) / attention, 1.0, 1e-12) << name;
  }
}

TEST(TrainingStep, ModelWorkIsWhatIsNeededWhateverIsRun) {
  TrainingStep step = step_of("llama3-8b");
  const double needed = model_flops(step);
  const Trace trace = generate_training_step(step).trace;
  const double attention = flops_of(trace, is_attention);
  EXPECT_NEAR(needed / (flops_of(trace, is_product) + attention * 3.0 / 3.5), 1.0, 1e-12);
  step.recomputation = Recomputation::full;
  EXPECT_EQ(model_flops(step), needed);
}

TEST(TrainingStep, UnfusedAttentionMultipliesWholeSquares) {
  TrainingStep step = step_of("gpt3-175b", 1);
  step.flash_attention = false;
  const Trace trace = generate_training_step(step).trace;
  // 12 s^2 h of a layer and sequence: Korthikanti et al., appendix A.
  const double expected = 12.0 * 2048.0 * 2048.0 * 12288.0 * 96.0;
  EXPECT_NEAR(flops_of(trace, is_attention) / expected, 1.0, 1e-12);
  // 72 L s h^2 (1 + s / 6 h + V / 12 L h) with the padded vocabulary.
  const double h = 12288.0, s = 2048.0;
  const double all_products =
      72.0 * 96.0 * s * h * h * (1.0 + s / (6.0 * h) + 50264.0 / (12.0 * 96.0 * h));
  EXPECT_NEAR((flops_of(trace, is_product) + expected) / all_products, 1.0, 1e-12);
}

TEST(TrainingStep, GroupedQueriesShrinkKeysAndValues) {
  const auto bytes_of = [](std::uint64_t kv_heads, const std::string& name) {
    TrainingStep step = step_of("llama3-8b", 1);
    step.model.kv_heads = kv_heads;
    const Trace trace = generate_training_step(step).trace;
    const auto found = std::ranges::find(trace.kernels, name, &Kernel::name);
    return found->dram_bytes.value();
  };
  const double rows = 2048.0, statistics = 4.0 * rows * 32.0;
  EXPECT_DOUBLE_EQ(bytes_of(32, "fwd_flash_attention"), 2.0 * 4.0 * rows * 4096.0 + statistics);
  EXPECT_DOUBLE_EQ(bytes_of(8, "fwd_flash_attention"), 2.0 * 2.5 * rows * 4096.0 + statistics);
  EXPECT_DOUBLE_EQ(bytes_of(8, "fwd_gemm_qkv"),
                   2.0 * (4096.0 * rows + 4096.0 * 6144.0 + 6144.0 * rows));
}

// Full: 2 N D of the layers and their attention once more. Selective: attention once more.
TEST(TrainingStep, RecomputationRunsTheForwardPassAgain) {
  for (const char* model : {"gpt3-6.7b", "llama3-8b", "mixtral-8x7b", "vit-l-16", "dit-xl-2"}) {
    TrainingStep step = step_of(model);
    const Trace none = generate_training_step(step).trace;
    const auto layers_forward = [&](auto counts) {
      return flops_of(none, [&](const Kernel& k) { return k.pass == Pass::forward && counts(k); });
    };
    const double attention = layers_forward(is_attention);
    step.recomputation = Recomputation::selective;
    const Trace selective = generate_training_step(step).trace;
    EXPECT_NEAR(all(selective) - all(none), attention, 1e-9 * all(none)) << model;
    step.recomputation = Recomputation::full;
    const Trace full = generate_training_step(step).trace;
    const auto products = [](const Kernel& k) { return is_product(k) || is_attention(k); };
    // What an image's condition becomes is not part of the layer that is run again.
    const auto in_layer = [&](const Kernel& k) {
      return products(k) && k.name != "fwd_gemm_modulation";
    };
    EXPECT_NEAR(flops_of(full, products) - flops_of(none, products), layers_forward(in_layer),
                1e-9 * all(none))
        << model;
    for (const Kernel& kernel : full.kernels)
      EXPECT_TRUE(!kernel.name.starts_with("rec_") || kernel.pass == Pass::backward);
    EXPECT_EQ(flops_of(full, is_forward), flops_of(none, is_forward)) << model;
  }
}

TEST(TrainingStep, EveryParameterGetsItsGradientOnce) {
  for (const std::string& name : model_shape_names()) {
    const TrainingStep step = step_of(name, 8);
    const GeneratedStep generated = generate_training_step(step);
    const auto launched = launch_counts(generated.trace);
    ASSERT_EQ(generated.gradients.size(), launched.size());
    double sum = 0.0;
    for (std::size_t k = 0; k < launched.size(); ++k)
      sum += static_cast<double>(launched[k]) * generated.gradients[k];
    EXPECT_EQ(sum, count_parameters(step.model).total) << name;
  }
}

TEST(TrainingStep, TensorParallelismSplitsProductsAndAddsCollectives) {
  TrainingStep step = step_of("llama3-70b", 1);
  const double whole = flops_of(generate_training_step(step).trace, is_product);
  step.tensor_parallel = 8;
  step.data_parallel = 4;
  const Trace part = generate_training_step(step).trace;
  EXPECT_NEAR(8.0 * flops_of(part, is_product) / whole, 1.0, 1e-12);
  const auto launched = launch_counts(part);
  std::uint64_t in_layers = 0;
  double reduced_bytes = 0.0;
  for (std::size_t k = 0; k < launched.size(); ++k) {
    const auto& collective = part.kernels[k].collective;
    if (!collective) continue;
    if (collective->group_size == 8 && launched[k] > 1) in_layers += launched[k];
    if (collective->group_size == 4) {
      EXPECT_EQ(collective->stride, 8U);
      reduced_bytes += static_cast<double>(launched[k]) * collective->message_bytes;
    }
  }
  // Megatron, per layer: 2 gathers and 2 scatters forward; the same and 2 more gathers backward.
  EXPECT_EQ(in_layers, 80U * 10U);
  EXPECT_NEAR(reduced_bytes, 2.0 * 70'553'706'496.0 / 8.0, 1.0);
  step.collectives = false;
  for (const Kernel& kernel : generate_training_step(step).trace.kernels)
    EXPECT_FALSE(kernel.collective) << kernel.name;
}

// Each rank holds a share of the experts and gets the tokens of all for them.
TEST(TrainingStep, ExpertParallelismMovesTokensNotWork) {
  TrainingStep step = step_of("mixtral-8x7b", 2);
  const auto one = generate_training_step(step).trace;
  step.data_parallel = 16;
  step.expert_parallel = 8;
  const auto spread = generate_training_step(step).trace;
  EXPECT_NEAR(flops_of(spread, is_product) / flops_of(one, is_product), 1.0, 1e-12);
  const auto find = [&](std::string_view name) -> const Kernel& {
    return *std::ranges::find(spread.kernels, name, &Kernel::name);
  };
  EXPECT_EQ(find("fwd_gemm_down").gemm, (GemmShape{4096, 2 * 2048 * 2 * 8 / 8, 14336, 1}));
  const Collective& dispatch = *find("fwd_all_to_all_dispatch").collective;
  EXPECT_EQ(dispatch.kind, CollectiveKind::all_to_all);
  EXPECT_EQ(dispatch.message_bytes, 2.0 * 2.0 * 4096.0 * 4096.0);  // top 2 of 4096 tokens, bf16
  EXPECT_EQ(dispatch.group_size, 8U);
  const Collective& experts = *find("bwd_all_reduce_experts").collective;
  EXPECT_EQ(experts.group_size, 2U);
  EXPECT_EQ(experts.stride, 8U);
  EXPECT_EQ(experts.message_bytes, 2.0 * 3.0 * 4096.0 * 14336.0);
}

double bytes_of(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.kernels, name, &Kernel::name);
  return found == trace.kernels.end() ? -1.0 : found->dram_bytes.value();
}

// Tensors of rows x width that are read and written, in 16 bits, and what is in 32.
TEST(TrainingStep, KernelsOfALlamaMoveTheirTensors) {
  const Trace trace = generate_training_step(step_of("llama3-8b", 1)).trace;
  const double r = 2048.0, h = 4096.0, kv = 1024.0, f = 14336.0, v = 128256.0, a = r * h;
  EXPECT_EQ(bytes_of(trace, "fwd_embedding"), 2 * 2 * a + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_norm_1"), 2 * (2 * a + h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_rope"), 2 * 2 * r * (h + kv) + 4 * r * 128);
  EXPECT_EQ(bytes_of(trace, "fwd_residual_norm_2"), 2 * (4 * a + h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "fwd_activation"), 2 * 3 * r * f);
  EXPECT_EQ(bytes_of(trace, "loss_cross_entropy"), 2 * 2 * r * v + 8 * r);
  EXPECT_EQ(bytes_of(trace, "bwd_norm_final"), 2 * (4 * a + 2 * h) + 4 * r);
  EXPECT_EQ(bytes_of(trace, "bwd_activation"), 2 * 5 * r * f);
  EXPECT_EQ(bytes_of(trace, "bwd_flash_dot"), 2 * 2 * a + 4 * a + 4 * r * 32);
  // Queries and the gradient of the output read, keys and values read and their gradients
  // written; the fp32 sum of the queries' gradient read and written.
  EXPECT_EQ(bytes_of(trace, "bwd_flash_attention"), 2 * (2 * a + 4 * r * kv) + 8 * a + 8 * r * 32);
  EXPECT_EQ(bytes_of(trace, "bwd_flash_convert"), 6 * a);
  EXPECT_EQ(bytes_of(trace, "bwd_memset_table"), 2 * v * h);
  EXPECT_EQ(bytes_of(trace, "bwd_gemm_down_weight"), 2 * (f * h + r * h + r * f));
  EXPECT_EQ(bytes_of(trace, "opt_gradient_norm"), 2 * 8'030'261'248.0);
}

TEST(TrainingStep, KernelsOfAGptMoveTheirTensors) {
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

TEST(TrainingStep, KernelsOfExpertsAndImagesMoveTheirTensors) {
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
  const double images = 3.0 * 256.0 * 1152.0, condition = 3.0 * 1152.0;
  EXPECT_EQ(bytes_of(dit, "fwd_silu"), 2 * 2 * condition);
  EXPECT_EQ(bytes_of(dit, "bwd_modulation_reduce"), 2 * 6 * images);
  EXPECT_EQ(bytes_of(dit, "fwd_patches"), 2 * 2 * 3.0 * 32 * 32 * 4);
  EXPECT_EQ(bytes_of(dit, "loss_squares"), 2 * 2.5 * 2 * 3.0 * 32 * 32 * 4);
  const Trace vit = generate_training_step(step_of("vit-l-16", 3)).trace;
  EXPECT_EQ(bytes_of(vit, "fwd_add_positions"), 2 * (2 * 3.0 * 197 + 197) * 1024);
  EXPECT_EQ(bytes_of(vit, "loss_cross_entropy"), 2 * 2 * 3.0 * 1000 + 8 * 3.0);
}

TEST(TrainingStep, AdamWKeepsFp32BesideTheWeights) {
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

TEST(TrainingStep, RefusesWhatCannotBeSplit) {
  const auto refused = [](const TrainingStep& step, std::string_view what) {
    expect_error<UsageError>([&] { (void)generate_training_step(step); }, what);
  };
  TrainingStep step = step_of("llama3-8b");
  step.tensor_parallel = 3;
  refused(step, "tp 3 does not divide heads 32");
  step.tensor_parallel = 16;
  refused(step, "tp 16 does not divide kv_heads 8");
  step = step_of("llama3-8b");
  step.expert_parallel = 2;
  refused(step, "ep 2: model 'llama3-8b' has no experts");
  step = step_of("mixtral-8x7b");
  step.expert_parallel = 3;
  refused(step, "ep 3 does not divide experts 8");
  step.expert_parallel = 4;
  step.data_parallel = 2;
  refused(step, "ep 4 does not divide dp 2");
  step = step_of("llama3-8b");
  step.seq = 10'000;
  refused(step, "seq is 10000; model 'llama3-8b' has a context of 8192 tokens");
  step = step_of("vit-l-16");
  step.seq = 128;
  refused(step, "seq is 128; an image of model 'vit-l-16' has 197 tokens");
  step = step_of("vit-l-16");
  step.tensor_parallel = 2;
  refused(step, "tp 2: only decoders are split, not model 'vit-l-16'");
  step = step_of("llama3-8b");
  step.batch = 0;
  refused(step, "batch is 0; expected a whole number from 1 to 1000000000");
  step.batch = 1'000'000'000;
  step.model.context = step.seq = 1'000'000'000;
  refused(step, "batch x seq x heads is 3.2e+19; expected at most 2^53");
}

RC_GTEST_PROP(TrainingStep, EveryShapeGivesAValidTraceThatReadsBack, ()) {
  const auto names = model_shape_names();
  TrainingStep step = step_of(names[*rc::gen::inRange<std::size_t>(0, names.size())],
                              *rc::gen::inRange<std::uint64_t>(1, 9),
                              128 * *rc::gen::inRange<std::uint64_t>(1, 17));
  if (step.model.kind == ModelKind::decoder)
    step.tensor_parallel = *rc::gen::element<std::uint64_t>(1, 2, 4);
  step.data_parallel = *rc::gen::element<std::uint64_t>(1, 8);
  if (step.model.experts > 0 && step.data_parallel == 8)
    step.expert_parallel = *rc::gen::element<std::uint64_t>(1, 2, 8);
  step.optimizer = *rc::gen::arbitrary<bool>();
  step.flash_attention = *rc::gen::arbitrary<bool>();
  step.recomputation =
      *rc::gen::element(Recomputation::none, Recomputation::selective, Recomputation::full);
  if (step.model.heads % step.tensor_parallel != 0) return;
  const Trace trace = generate_training_step(step).trace;
  RC_ASSERT(parse_trace_json(to_json(trace), "t.json") == trace);
}

}  // namespace
}  // namespace rubato
