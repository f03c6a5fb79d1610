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
    EXPECT_NEAR(flops_of(trace, multiplies_in_attention) / attention, 1.0, 1e-12) << name;
  }
}

TEST(TrainingStep, ModelWorkIsWhatIsNeededWhateverIsRun) {
  TrainingStep step = step_of("llama3-8b");
  const double needed = model_flops(step);
  const Trace trace = generate_training_step(step).trace;
  const double attention = flops_of(trace, multiplies_in_attention);
  EXPECT_NEAR(needed / (flops_of(trace, is_product) + attention * 3.0 / 3.5), 1.0, 1e-12);
  step.recomputation = Recomputation::full;
  EXPECT_EQ(model_flops(step), needed);
  step.flash_attention = false;
  EXPECT_EQ(model_flops(step), needed);
}

TEST(TrainingStep, UnfusedAttentionMultipliesWholeSquares) {
  TrainingStep step = step_of("gpt3-175b", 1);
  step.flash_attention = false;
  const Trace trace = generate_training_step(step).trace;
  // 12 s^2 h of a layer and sequence: Korthikanti et al., appendix A.
  const double expected = 12.0 * 2048.0 * 2048.0 * 12288.0 * 96.0;
  EXPECT_NEAR(flops_of(trace, multiplies_in_attention) / expected, 1.0, 1e-12);
  // 72 L s h^2 (1 + s / 6 h + V / 12 L h) with the padded vocabulary.
  const double h = 12288.0, s = 2048.0;
  const double all_products =
      72.0 * 96.0 * s * h * h * (1.0 + s / (6.0 * h) + 50264.0 / (12.0 * 96.0 * h));
  EXPECT_NEAR((flops_of(trace, is_product) + expected) / all_products, 1.0, 1e-12);
}

// Full: 2 N D of the layers and their attention once more. Selective: attention once more.
TEST(TrainingStep, RecomputationRunsTheForwardPassAgain) {
  for (const char* model : {"gpt3-6.7b", "llama3-8b", "mixtral-8x7b", "vit-l-16", "dit-xl-2"}) {
    TrainingStep step = step_of(model);
    const Trace none = generate_training_step(step).trace;
    const auto layers_forward = [&](auto counts) {
      return flops_of(none, [&](const Kernel& k) { return k.pass == Pass::forward && counts(k); });
    };
    const double attention = layers_forward(multiplies_in_attention);
    step.recomputation = Recomputation::selective;
    const Trace selective = generate_training_step(step).trace;
    EXPECT_NEAR(all(selective) - all(none), attention, 1e-9 * all(none)) << model;
    step.recomputation = Recomputation::full;
    const Trace full = generate_training_step(step).trace;
    const auto products = [](const Kernel& k) {
      return is_product(k) || multiplies_in_attention(k);
    };
    EXPECT_NEAR(flops_of(full, products) - flops_of(none, products), layers_forward(products),
                1e-9 * all(none))
        << model;
    for (const Kernel& kernel : full.kernels)
      EXPECT_TRUE(!kernel.name.starts_with("rec_") || kernel.pass == Pass::backward);
    EXPECT_EQ(flops_of(full, is_forward), flops_of(none, is_forward)) << model;
  }
}

TEST(TrainingStep, EveryParameterGetsItsGradientOnce) {
  for (const std::string& name : model_shape_names()) {
    TrainingStep step = step_of(name, 8);
    EXPECT_EQ(gradients_of(step), count_parameters(step.model).total) << name;
    if (step.model.kind != ModelKind::decoder) continue;
    step.tensor_parallel = 4;
    if (step.model.experts > 0) step.data_parallel = step.expert_parallel = 2;
    EXPECT_NEAR(gradients_of(step) / parameters_per_rank(step), 1.0, 1e-14) << name;
  }
}

// Eight heads of keys and values on sixteen ranks: two have the same one.
TEST(TrainingStep, KeysAndValuesAreCopiedBeyondTheirHeads) {
  TrainingStep step = step_of("llama3-70b", 1);
  step.tensor_parallel = 16;
  const Trace trace = generate_training_step(step).trace;
  const auto find = [&](std::string_view name) -> const Kernel& {
    return *std::ranges::find(trace.kernels, name, &Kernel::name);
  };
  EXPECT_EQ(find("fwd_gemm_qkv").gemm, (GemmShape{8192 / 16 + 2 * 128, 2048, 8192, 1}));
  EXPECT_EQ(find("bwd_all_reduce_kv_copies").collective,
            (Collective{CollectiveKind::all_reduce, 2.0 * 2 * 128 * 8192, 2, 1}));
  const double copies = 80.0 * 2 * 1024 * 8192;
  EXPECT_DOUBLE_EQ(parameters_per_rank(step), (70'553'706'496.0 + copies) / 16.0);
  EXPECT_NEAR(gradients_of(step) / parameters_per_rank(step), 1.0, 1e-14);
  step.tensor_parallel = 8;
  EXPECT_EQ(kv_copies(step), 1U);
}

// Nothing is sent inside the experts: a gather before and a scatter behind them, in both passes.
TEST(TrainingStep, ExpertsKeepTheTokensThatWereGathered) {
  TrainingStep step = step_of("mixtral-8x7b", 1);
  step.tensor_parallel = 4;
  const Trace trace = generate_training_step(step).trace;
  const auto launched = launch_counts(trace);
  std::uint64_t in_layers = 0;
  for (std::size_t k = 0; k < launched.size(); ++k)
    if (trace.kernels[k].collective && launched[k] > 1) in_layers += launched[k];
  EXPECT_EQ(in_layers, 32U * (2 + 2 + 3 + 2));
}

TEST(TrainingStep, NamesSayHowItIsRun) {
  TrainingStep step = step_of("llama3-8b");
  EXPECT_EQ(generate_training_step(step).trace.name, "llama3-8b-b4-s2048-tp1-dp1");
  step.flash_attention = false;
  step.recomputation = Recomputation::selective;
  EXPECT_EQ(generate_training_step(step).trace.name,
            "llama3-8b-b4-s2048-tp1-dp1-unfused-recompute-selective");
  for (const auto value : {Recomputation::none, Recomputation::selective, Recomputation::full})
    EXPECT_EQ(recomputation_from_name(name_of(value)), value);
  expect_error<UsageError>([] { (void)recomputation_from_name("some"); },
                           "recomputation 'some' is not known; expected one of none, selective");
}

TEST(TrainingStep, TensorParallelismSplitsProductsAndAddsCollectives) {
  TrainingStep step = step_of("llama3-70b", 1);
  step.tensor_parallel = 8;
  EXPECT_EQ(padded_vocabulary(step), 126U * 8 * 128);  // of 128256, as Megatron pads
  step.tensor_parallel = 1;
  EXPECT_EQ(padded_vocabulary(step), 128256U);
  step.model.vocab = 131072;
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
  EXPECT_NEAR(reduced_bytes, 2.0 * count_parameters(step.model).total / 8.0, 1.0);
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

TEST(TrainingStep, RefusesWhatCannotBeSplit) {
  const auto refused = [](const TrainingStep& step, std::string_view what) {
    expect_error<UsageError>([&] { (void)generate_training_step(step); }, what);
  };
  TrainingStep step = step_of("llama3-8b");
  step.tensor_parallel = 3;
  refused(step, "tp 3 does not divide heads 32");
  step.model.hidden = 3072;
  step.model.heads = 24;
  step.model.kv_heads = 6;
  step.tensor_parallel = 4;
  refused(step, "tp 4 does not divide kv_heads 6");
  step = step_of("llama3-8b");
  for (const Dtype dtype : {Dtype::tf32, Dtype::fp64, Dtype::unknown}) {
    step.dtype = dtype;
    refused(step, "; steps are made in fp32, fp16, bf16, fp8 or nvfp4");
  }
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
  refused(step, "batch x seq x heads is 3.2e+19; expected at most 9.01e+15");
  step = step_of("llama3-405b");
  step.batch = 1'000'000'000;
  refused(step, "FLOP count of a step is ");
  step.model.layers = 1'000'000'000;
  refused(step, "number of parameters is 3.19e+18; expected at most 1e+15");
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
