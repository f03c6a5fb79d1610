// What a step must be to be run: ranges, what divides what, and which kernels are known.

#include <algorithm>

#include <fmt/format.h>

#include "common/error.hpp"
#include "traces/transformer/limits.hpp"
#include "traces/transformer/llm_c_kernels.hpp"
#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

// Beyond all that was ever trained, far below what doubles and files hold.
void check_work(const TrainingStep& step) {
  constexpr double exact = 9007199254740992.0;  // 2^53: sides and counts of products stay exact
  constexpr double parameters = 1e15, flops = 1e24;
  const auto expect_most = [](std::string_view what, double value, double most) {
    if (value > most)
      throw UsageError(fmt::format("{} is {:.3g}; expected at most {:.3g}", what, value, most));
  };
  const double widest = static_cast<double>(
      std::max({step.model.experts_per_token, step.model.heads, std::uint64_t{1}}));
  expect_most("batch x seq x heads", tokens(step) * widest, exact);
  expect_most("number of parameters", count_parameters(step.model).total, parameters);
  expect_most("FLOP count of a step", model_flops(step), flops);
}

// Of llm.c the table of positions is as long as the sequence.
void check_sequence(const TrainingStep& step) {
  const ModelShape& s = step.model;
  if (step.kernels == KernelStyle::llm_c) return;
  if (s.kind == ModelKind::decoder) {
    if (step.seq > s.context)
      throw UsageError(fmt::format("seq is {}; model '{}' has a context of {} tokens", step.seq,
                                   s.name, s.context));
  } else if (step.seq != s.tokens_per_image()) {
    throw UsageError(fmt::format("seq is {}; an image of model '{}' has {} tokens", step.seq,
                                 s.name, s.tokens_per_image()));
  }
}

void check_tensor_parallel(const TrainingStep& step) {
  const ModelShape& s = step.model;
  const std::uint64_t t = step.tensor_parallel;
  if (t == 1) return;
  if (s.kind != ModelKind::decoder)
    throw UsageError(fmt::format("tp {}: only decoders are split, not model '{}'", t, s.name));
  expect_divides("tp", t, "heads", s.heads);
  if (t % s.kv_heads != 0) expect_divides("tp", t, "kv_heads", s.kv_heads);
  expect_divides("tp", t, "ffn", s.ffn);
  if (step.sequence_parallel || step.kernels == KernelStyle::llm_c)
    expect_divides("tp", t, "batch x seq", step.batch * own_seq(step));
  if (!step.sequence_parallel && s.experts > 0 && step.phase == StepPhase::training)
    throw UsageError(
        fmt::format("experts with tp {} and without sequence parallelism; their "
                    "tokens are split by it, as Megatron-LM demands",
                    t));
}

void check_context_parallel(const TrainingStep& step) {
  const std::uint64_t c = step.context_parallel;
  if (c == 1) return;
  if (step.model.kind != ModelKind::decoder)
    throw UsageError(fmt::format("cp {}: only sequences of decoders are shared, not of model '{}'",
                                 c, step.model.name));
  expect_divides("cp", c, "seq", step.seq);
  if (!step.flash_attention)
    throw UsageError(fmt::format("cp {} with unfused attention; rings run flash attention", c));
}

void check_expert_parallel(const TrainingStep& step) {
  const std::uint64_t ep = step.expert_parallel;
  if (ep == 1) return;
  if (step.model.experts == 0)
    throw UsageError(fmt::format("ep {}: model '{}' has no experts", ep, step.model.name));
  expect_divides("ep", ep, "experts", step.model.experts);
  if (step.context_parallel == 1) expect_divides("ep", ep, "dp", step.data_parallel);
  const std::uint64_t replicas = step.data_parallel * step.context_parallel;
  if (replicas % ep != 0)
    throw UsageError(
        fmt::format("ep {} does not divide dp {} x cp {}, whose ranks share the experts", ep,
                    step.data_parallel, step.context_parallel));
}

void check_phase(const TrainingStep& step) {
  if (step.phase == StepPhase::training) return;
  const auto refuse = [&](std::string_view what) {
    throw UsageError(fmt::format("phase {}: {}", name_of(step.phase), what));
  };
  if (step.model.kind != ModelKind::decoder) refuse("only of decoders");
  const bool fused = step.kernels == KernelStyle::fused && step.flash_attention;
  const bool eager = step.kernels == KernelStyle::eager && step.phase == StepPhase::prefill;
  if (!fused && !eager)
    refuse("only fused kernels with flash attention are known, and of prefill eager ones");
  if (step.context_parallel > 1 || step.data_parallel > 1 || step.expert_parallel > 1)
    refuse("only of one rank, or tensor parallel");
  if (step.sequence_parallel && step.tensor_parallel > 1)
    refuse("servers split no sequences; without sequence parallelism");
}

// Steps of what nobody here knows the launches of.
void check_style(const TrainingStep& step) {
  const ModelShape& s = step.model;
  check_phase(step);
  const bool plain = s.experts == 0 && s.kind != ModelKind::dit;
  const bool quantised = step.dtype == Dtype::fp8 || step.dtype == Dtype::nvfp4;
  if (step.kernels == KernelStyle::llm_c) check_llm_c(step);
  if (step.kernels == KernelStyle::eager && !plain)
    throw UsageError(
        fmt::format("eager kernels are of GPT, Llama and ViT models, not of '{}'", s.name),
        {.in = {}, .hint = "--kernels fused"});
  if (step.kernels == KernelStyle::eager && step.fp32_gradients)
    throw UsageError("gradients in fp32: eager kernels have those of autocast, which are",
                     {.in = {}, .hint = "leave --fp32-gradients out"});
  if (!quantised) return;
  if (step.kernels != KernelStyle::fused || !plain)
    throw UsageError(fmt::format("dtype {}: only fused kernels of GPT, Llama and ViT models have "
                                 "its casts",
                                 name_of(step.dtype)),
                     {.in = {}, .hint = "--dtype bf16"});
}

}  // namespace

void check(const TrainingStep& step) {
  check(step.model);
  expect_range("batch", step.batch);
  expect_range("seq", step.seq);
  expect_range("tp", step.tensor_parallel);
  expect_range("dp", step.data_parallel);
  expect_range("cp", step.context_parallel);
  expect_range("ep", step.expert_parallel);
  expect_range("tp x ep", step.tensor_parallel * step.expert_parallel);
  expect_range("dp x cp", step.data_parallel * step.context_parallel);
  check_sequence(step);
  expect_training_dtype(step.dtype);
  check_style(step);
  check_work(step);
  check_context_parallel(step);
  check_tensor_parallel(step);
  check_expert_parallel(step);
}

}  // namespace rubato
