#include "tools/options/parallel.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "models/network/cluster.hpp"
#include "tools/command_line.hpp"
#include "tools/options/gpu.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

// Stages 1 and 2 differ in what they hold, not in what they send in a step of one pass.
Sharding sharding_of(const std::string& zero) {
  if (zero == "0") return Sharding::none;
  return zero == "3" ? Sharding::parameters : Sharding::optimizer;
}

constexpr const char* heading = "Steps as graphs";

// Models with experts have no biases, see check(ModelShape).
void give_experts(const ModelShapeOptions& o, ModelShape& model) {
  if (o.experts && *o.experts == 0) model.experts = model.experts_per_token = 0;
  if (o.experts && *o.experts > 0) {
    model.biases = false;
    model.experts = *o.experts;
    if (model.experts_per_token == 0) model.experts_per_token = 2;
  }
  if (!o.top_k) return;
  if (model.experts == 0) throw UsageError("--top-k means nothing without --experts");
  model.experts_per_token = *o.top_k;
}

// A shape that was not published has no longest sequence.
ModelShape model_of(const ModelShapeOptions& o, ModelShape model) {
  if ((o.hidden || o.heads) && !is_gpt(model)) {
    throw UsageError(fmt::format("{} is for GPT models; the shape of another one goes into a file",
                                 o.hidden ? "--hidden" : "--heads"),
                     {.in = {}, .hint = "docs/model-shapes.md says what it holds"});
  }
  if (o.layers) model.layers = *o.layers;
  if (o.vocab) model.vocab = *o.vocab;
  if (o.hidden) {
    model.hidden = *o.hidden;
    model.ffn = 4 * *o.hidden;
  }
  if (o.heads) model.heads = model.kv_heads = *o.heads;
  if (o.layers || o.vocab || o.hidden || o.heads)
    model.context = std::max(model.context, o.seq.value_or(0));
  give_experts(o, model);
  return model;
}

// llm.c's kernels where it could run the model, those of fused frameworks elsewhere.
KernelStyle style_of(const ModelShapeOptions& o, const ModelShape& model) {
  const bool serves = o.phase != "training";
  const KernelStyle style =
      o.kernels == "eager" ? KernelStyle::eager
      : o.kernels == "fused" || (o.kernels.empty() && (serves || !is_gpt(model)))
          ? KernelStyle::fused
          : KernelStyle::llm_c;
  if (o.without_dropout && (style != KernelStyle::eager || !model.has_dropout()))
    throw UsageError("--no-dropout is for --kernels eager of GPT models; others have none");
  if (style != KernelStyle::llm_c) return style;
  for (const auto& [name, value] :
       {std::pair{"--attention", &o.attention}, {"--recompute", &o.recompute}}) {
    if (!value->empty()) throw UsageError(fmt::format("{} is for --kernels fused or eager", name));
  }
  if (o.without_optimizer) throw UsageError("--no-optimizer is for --kernels fused or eager");
  return style;
}

// PyTorch's default is highest. llm.c in fp32 lets its products use TF32.
MatmulPrecision precision_of(const ModelShapeOptions& o, Dtype dtype, KernelStyle style) {
  if (o.matmul_precision.empty())
    return style == KernelStyle::llm_c ? MatmulPrecision::high : MatmulPrecision::highest;
  if (dtype != Dtype::fp32)
    throw UsageError(
        fmt::format("--matmul-precision is for --dtype fp32, not for {}", name_of(dtype)));
  if (o.matmul_precision == "highest") return MatmulPrecision::highest;
  return o.matmul_precision == "high" ? MatmulPrecision::high : MatmulPrecision::medium;
}

std::uint64_t usual_seq(const ModelShape& model, KernelStyle style) {
  constexpr std::uint64_t of_llm_c = 1024;
  if (model.kind != ModelKind::decoder) return model.tokens_per_image();
  return style == KernelStyle::llm_c ? std::min(of_llm_c, model.context) : model.context;
}

void add_kernel_options(CommandLine& app, ModelShapeOptions& o) {
  app.add_option(
         "--kernels", o.kernels,
         "llm.c: as llm.c launches them; fused: flash attention, one GEMM for queries, keys "
         "and values, as fused frameworks do; eager: PyTorch's operators one by one, without "
         "torch.compile [llm.c for GPT models]")
      ->one_of({"llm.c", "fused", "eager"});
  app.add_option("--attention", o.attention,
                 "Of fused and eager kernels: flash, or unfused with the scores in memory [flash; "
                 "eager: unfused]")
      ->one_of({"flash", "unfused"});
  app.add_option("--recompute", o.recompute,
                 "Of fused and eager kernels, what the backward pass runs again: none, selective "
                 "(attention alone) or full (whole layers) [none]")
      ->one_of({"none", "selective", "full"});
  app.add_flag("--no-dropout", o.without_dropout, "Eager kernels of GPT models: without dropout");
  app.add_flag(
      "--fp32-gradients", o.fp32_gradients,
      "Of fused kernels: weights' gradients in fp32, as Megatron-LM sums and reduces them");
  app.add_flag("--optimizer", o.optimizer,
               "With AdamW: of fused kernels with the gradient norm, of llm.c with gradient "
               "clearing too, of eager ones over lists of tensors [llm.c: no; others: yes]");
  app.add_flag("--no-optimizer", o.without_optimizer,
               "Fused and eager kernels: without an optimizer");
}

}  // namespace

void add_model_shape_options(CommandLine& app, ModelShapeOptions& o) {
  app.add_option("MODEL,--model", o.model,
                 fmt::format("Model: {}, or a file of a shape (.json)",
                             fmt::join(model_shape_names(), ", ")))
      ->capture_default_str();
  app.add_option(
      "--batch", o.batch,
      fmt::format("Sequences or images per GPU and step, with graphs per microbatch [{}]",
                  o.batch ? fmt::to_string(*o.batch) : "llm.c: 40; others: 1"));
  app.add_option(
      "--seq,--context", o.seq,
      "Tokens per sequence; of decode those that the new one attends to [llm.c: 1024, at most the "
      "model's context; others: the context]");
  app.add_option("--phase", o.phase,
                 "training, or a step of a server: prefill (the prompts of a batch) or decode (one "
                 "more token for each sequence, keys and values in the cache)")
      ->one_of({"training", "prefill", "decode"})
      ->capture_default_str();
  app.add_option("--layers", o.layers, "Number of layers [the model's]");
  app.add_option("--hidden", o.hidden, "Hidden size (GPT models) [the model's]");
  app.add_option("--heads", o.heads, "Number of attention heads (GPT models) [the model's]");
  app.add_option("--vocab", o.vocab, "Size of the vocabulary [the model's]");
  app.add_option("--experts", o.experts, "Number of experts in each layer [the model's]");
  app.add_option("--top-k", o.top_k, "Experts that each token uses [the model's, or 2]");
  app.add_option("--dtype", o.dtype,
                 "fp32, fp16, bf16, fp8 or nvfp4; of the last two the layers' matrices alone, with "
                 "--kernels fused")
      ->one_of({"fp32", "fp16", "bf16", "fp8", "nvfp4"})
      ->capture_default_str();
  app.add_option("--matmul-precision", o.matmul_precision,
                 "Of --dtype fp32, as torch.set_float32_matmul_precision: products in fp32 on CUDA "
                 "cores (highest) or in TF32 on tensor cores (high, medium) [highest, as PyTorch; "
                 "llm.c: high]")
      ->one_of({"highest", "high", "medium"});
  add_kernel_options(app, o);
  app.rare(
      {"--matmul-precision", "--no-dropout", "--fp32-gradients", "--hidden", "--heads", "--vocab"});
  app.group("Model", {"--batch", "--seq", "--layers", "--experts", "--top-k"});
  app.group("Kernels", {"--dtype", "--kernels", "--attention", "--recompute", "--optimizer",
                        "--no-optimizer"});
}

TrainingStep shape_of(const ModelShapeOptions& o, const ModelShape& model) {
  constexpr std::uint64_t llm_c_batch = 40;
  TrainingStep step{.model = model_of(o, model), .dtype = from_name<Dtype>(o.dtype).value()};
  step.kernels = style_of(o, step.model);
  const bool fused = step.kernels != KernelStyle::llm_c;
  step.matmul_precision = precision_of(o, step.dtype, step.kernels);
  step.dropout = !o.without_dropout;
  step.batch = o.batch.value_or(fused ? 1 : llm_c_batch);
  step.seq = o.seq.value_or(usual_seq(step.model, step.kernels));
  if (!fused && step.seq > step.model.context)
    throw UsageError(fmt::format("seq is {}; model '{}' has a context of {} tokens", step.seq,
                                 model.name, step.model.context));
  if (o.optimizer && o.without_optimizer)
    throw UsageError("--optimizer and --no-optimizer exclude each other");
  if (o.phase != "training") {
    if (o.optimizer) throw UsageError("--optimizer is for --phase training");
    step.phase = o.phase == "decode" ? StepPhase::decode : StepPhase::prefill;
  }
  step.optimizer =
      o.optimizer || (fused && !o.without_optimizer && step.phase == StepPhase::training);
  step.fp32_gradients = o.fp32_gradients;
  const bool flash = step.kernels != KernelStyle::eager;  // where it is not said
  step.flash_attention = o.attention.empty() ? flash : o.attention == "flash";
  if (!o.recompute.empty()) step.recomputation = recomputation_from_name(o.recompute);
  return step;
}

void add_parallel_options(CommandLine& app, ParallelOptions& o) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str()->group(heading);
  };
  add("--zero", o.zero,
      "0 all-reduces DDP's buckets; 1, 2 shard the optimizer; 3 the parameters too, as FSDP")
      ->one_of({"0", "1", "2", "3"});
  app.add_flag("--no-sequence-parallel", o.without_sequence,
               "Tensor parallelism with all-reduces; what lies between products is not split")
      ->group(heading);
  add("--tp-overlap", o.tensor_chunks,
      "0: nothing beside the collectives of --tp; 1: those of the backward pass beside its "
      "products, as Megatron-LM; N: others too, in N pieces beside their product's")
      ->in_range(0, 64);
  add("--buckets", o.buckets,
      "Of gradients: ddp, of 1 and then 25 MiB; megatron, of 40 million elements or more, one "
      "behind the first stage")
      ->one_of({"ddp", "megatron"});
  add("--microbatches", o.microbatches, "Of a step and replica, --batch sequences each");
  add("--schedule", o.schedule, "Of --pp: gpipe, 1f1b, interleaved, early-recompute, zb-h1");
  add("--chunks", o.chunks, "Model chunks of each stage, with --schedule interleaved");
  app.add_flag("--pp-overlap", o.overlap_messages,
               "Messages between stages beside kernels, received one pass ahead")
      ->group(heading);
  add("--cp", o.context, "Context parallelism: ranks that share a sequence, ring attention");
  add("--ep", o.expert, "Expert parallelism: ranks of --dp x --cp that share the experts");
  add("--gpu", o.gpu, "Shipped name or file");
  app.add_option("--cluster", o.cluster,
                 "Shipped name or file, see rubato network [guessed from the GPU's link]")
      ->group(heading);
}

std::optional<std::string> given_parallel_option(const CommandLine& app) {
  for (const std::string& option : app.given_of(heading))
    if (option != "--ep" && option != "--no-sequence-parallel") return option;
  return std::nullopt;
}

ParallelStepInput parallel_input(const ParallelOptions& o, const TrainingStep& shape,
                                 std::uint32_t stages) {
  if (o.buckets == "megatron" && sharding_of(o.zero) == Sharding::parameters)
    throw UsageError("--buckets megatron means nothing with --zero 3, which has no buckets");
  ParallelStepInput input{
      .shape = shape,
      .sharding = sharding_of(o.zero),
      .bucketing = o.buckets == "megatron" ? Bucketing::megatron : Bucketing::ddp,
      .tensor_overlap = {.bulk = o.tensor_chunks > 0,
                         .chunks = std::max<std::uint32_t>(o.tensor_chunks, 1)},
      .pipeline = {.kind = schedule_from_name(o.schedule),
                   .stages = stages,
                   .microbatches = o.microbatches,
                   .chunks = o.chunks},
      .overlap_messages = o.overlap_messages,
      .spec = load_gpu(o.gpu)};
  input.shape.sequence_parallel = !o.without_sequence;
  input.shape.context_parallel = o.context;
  input.shape.expert_parallel = o.expert;
  if (!o.cluster.empty()) input.spec.cluster = load_cluster(o.cluster);
  return input;
}

}  // namespace rubato
