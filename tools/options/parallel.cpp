#include "tools/options/parallel.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "models/network/cluster.hpp"
#include "tools/command_line.hpp"
#include "tools/options/gpu.hpp"

namespace rubato {

namespace {

// Stages 1 and 2 differ in what they hold, not in what they send in a step of one pass.
Sharding sharding_of(const std::string& zero) {
  if (zero == "0") return Sharding::none;
  return zero == "3" ? Sharding::parameters : Sharding::optimizer;
}

constexpr const char* heading = "Steps as graphs";

}  // namespace

void add_model_shape_options(CommandLine& app, ModelShapeOptions& o) {
  app.add_option(
         "MODEL,--model", o.model,
         fmt::format("{}, or a file of a shape (.json)", fmt::join(model_shape_names(), ", ")))
      ->capture_default_str();
  app.add_option(
      "--batch", o.batch,
      fmt::format("Sequences or images per GPU and step, with graphs per microbatch [{}]",
                  o.batch ? fmt::to_string(*o.batch) : "40; fused: 1"));
  app.add_option("--seq", o.seq,
                 "Tokens per sequence [1024, at most the model's context; fused: the context]");
  app.add_option("--layers", o.layers, "Layers [the model's]");
  app.add_option("--hidden", o.hidden, "Hidden size [the model's]");
  app.add_option("--heads", o.heads, "Attention heads [the model's]");
  app.add_option("--vocab", o.vocab, "Vocabulary [the model's]");
  app.add_option("--dtype", o.dtype, "bf16, fp16 or fp32")->capture_default_str();
  app.add_flag("--optimizer,!--no-optimizer", o.optimizer,
               "With gradient norm and AdamW, of llm.c also gradient clearing [no; fused: yes]");
}

Dtype dtype_of(const ModelShapeOptions& o) {
  const auto dtype = from_name<Dtype>(o.dtype);
  if (!dtype || *dtype == Dtype::unknown) {
    throw UsageError(fmt::format("--dtype '{}' is not known{}", o.dtype,
                                 did_you_mean(o.dtype, all_names<Dtype>())));
  }
  return *dtype;
}

GptShape shape_of(const ModelShapeOptions& o, const ModelShape& model) {
  GptShape shape = gpt_shape(model);
  shape.layers = o.layers.value_or(shape.layers);
  shape.hidden = o.hidden.value_or(shape.hidden);
  shape.heads = o.heads.value_or(shape.heads);
  shape.vocab = o.vocab.value_or(shape.vocab);
  shape.batch = o.batch.value_or(shape.batch);
  shape.seq = o.seq.value_or(shape.seq);
  const bool as_named = !o.layers && !o.hidden && !o.heads && !o.vocab;
  if (as_named && shape.seq > model.context)
    throw UsageError(fmt::format("seq is {}; model '{}' has a context of {} tokens", shape.seq,
                                 model.name, model.context));
  shape.optimizer = o.optimizer;
  shape.dtype = dtype_of(o);
  return shape;
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
  add("--microbatches", o.microbatches, "Of a step and replica, --batch sequences each");
  add("--schedule", o.schedule, "Of --pp: gpipe, 1f1b, interleaved, early-recompute, zb-h1");
  add("--chunks", o.chunks, "Model chunks of each stage, with --schedule interleaved");
  app.add_flag("--pp-overlap", o.overlap_messages,
               "Messages between stages beside kernels, received one pass ahead")
      ->group(heading);
  add("--cp", o.context, "Context parallelism: ranks that share a sequence, ring attention");
  add("--experts", o.experts, "Of each layer's MLP; 0: it is dense");
  app.add_option("--top-k", o.top_k, "Experts a token goes to [2]")->group(heading);
  add("--ep", o.expert, "Expert parallelism: ranks of --dp x --cp that share the experts");
  add("--gpu", o.gpu, "Shipped name or file");
  app.add_option("--cluster", o.cluster,
                 "Shipped name or file, see rubato network [guessed from the GPU's link]")
      ->group(heading);
}

std::optional<std::string> given_parallel_option(const CommandLine& app) {
  for (const std::string& option : app.given_of(heading))
    if (option != "--ep") return option;
  return std::nullopt;
}

ParallelStepInput parallel_input(const ParallelOptions& o, const GptShape& shape,
                                 std::uint32_t stages) {
  if (o.top_k && o.experts == 0) throw UsageError("--top-k means nothing without --experts");
  ParallelStepInput input{.shape = shape,
                          .split = {.sequence_parallel = !o.without_sequence,
                                    .context = o.context,
                                    .experts = o.experts,
                                    .top_k = o.top_k.value_or(2),
                                    .expert = o.expert},
                          .sharding = sharding_of(o.zero),
                          .tensor_overlap = {.bulk = o.tensor_chunks > 0,
                                             .chunks = std::max<std::uint32_t>(o.tensor_chunks, 1)},
                          .pipeline = {.kind = schedule_from_name(o.schedule),
                                       .stages = stages,
                                       .microbatches = o.microbatches,
                                       .chunks = o.chunks},
                          .overlap_messages = o.overlap_messages,
                          .spec = load_gpu(o.gpu)};
  if (!o.cluster.empty()) input.spec.cluster = load_cluster(o.cluster);
  return input;
}

}  // namespace rubato
