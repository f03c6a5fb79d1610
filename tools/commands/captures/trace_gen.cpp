// rubato trace gen: the kernels of a training step from a model's shapes.

#include <initializer_list>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/suggest.hpp"
#include "sim/capture/parallel_step.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/trace.hpp"
#include "tools/options/gpu.hpp"
#include "tools/terminal/output.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/gpt.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

struct Options {
  std::string model = "gpt3-xl", kernels;
  std::optional<std::uint64_t> layers, hidden, heads, vocab, batch, seq;
  std::uint64_t tp = 1, dp = 1, ep = 1;
  std::string dtype = "bf16", collectives = "model", out = "-";
  std::string attention = "flash", recompute = "none";
  bool optimizer = false, graph = false;
  std::string gpu = "a100-sxm4-80gb", cluster, zero = "0";
};

Dtype dtype_of(const Options& o) {
  const auto dtype = from_name<Dtype>(o.dtype);
  if (!dtype || *dtype == Dtype::unknown) {
    throw UsageError(fmt::format("--dtype '{}' is not known{}", o.dtype,
                                 did_you_mean(o.dtype, all_names<Dtype>())));
  }
  return *dtype;
}

// llm.c's kernels where it could run the model, those of fused frameworks elsewhere.
bool fused(const Options& o, const ModelShape& model) {
  return o.kernels.empty() ? !is_gpt(model) : o.kernels == "fused";
}

GptShape shape_of(const Options& o, const ModelShape& model) {
  GptShape shape = gpt_shape(model);
  shape.layers = o.layers.value_or(shape.layers);
  shape.hidden = o.hidden.value_or(shape.hidden);
  shape.heads = o.heads.value_or(shape.heads);
  shape.vocab = o.vocab.value_or(shape.vocab);
  shape.batch = o.batch.value_or(shape.batch);
  shape.seq = o.seq.value_or(shape.seq);
  shape.tensor_parallel = o.tp;
  shape.data_parallel = o.dp;
  shape.optimizer = o.optimizer;
  shape.collectives = o.collectives == "model";
  shape.dtype = dtype_of(o);
  return shape;
}

TrainingStep step_of(const Options& o, const ModelShape& model) {
  const bool text = model.kind == ModelKind::decoder;
  return {.model = model,
          .batch = o.batch.value_or(1),
          .seq = o.seq.value_or(text ? model.context : model.tokens_per_image()),
          .dtype = dtype_of(o),
          .tensor_parallel = o.tp,
          .data_parallel = o.dp,
          .expert_parallel = o.ep,
          .collectives = o.collectives == "model",
          .optimizer = o.optimizer,
          .flash_attention = o.attention == "flash",
          .recomputation = o.recompute == "none"   ? Recomputation::none
                           : o.recompute == "full" ? Recomputation::full
                                                   : Recomputation::selective};
}

// Stages 1 and 2 differ in what they hold, not in what they send in a step of one pass.
Sharding sharding_of(const std::string& zero) {
  if (zero == "0") return Sharding::none;
  return zero == "3" ? Sharding::parameters : Sharding::optimizer;
}

void write_graph(const Options& o, const ModelShape& model) {
  ParallelStepInput input{.shape = shape_of(o, model),
                          .sharding = sharding_of(o.zero),
                          .buckets = {},
                          .spec = load_gpu(o.gpu)};
  if (!o.cluster.empty()) input.spec.cluster = load_cluster(o.cluster);
  const ParallelStep step = parallel_step(input);
  if (o.out == "-") {
    print(capture_json(step.capture));
  } else {
    save_capture(step.capture, o.out);
  }
  const ParallelStepTimes& t = step.times;
  fmt::print(stderr,
             "{}: {:.3f} ms at default clocks: {:.3f} ms of kernels, {:.3f} ms of communication "
             "beside them ({:.3f} GB), {:.3f} ms of the step exposed\n",
             step.capture.name, t.step_s * 1e3, t.compute_s * 1e3, t.comm_s * 1e3,
             t.comm_bytes * 1e-9, t.exposed_s() * 1e3);
}

void say_memory(double parameters, const MemoryPerRank& memory) {
  constexpr double giga = 1e-9;
  fmt::print(stderr,
             "{:.2f} B parameters; each GPU holds {:.1f} GB: {:.1f} GB of weights, {:.1f} GB of "
             "gradients, {:.1f} GB of optimizer state, {:.1f} GB of activations\n",
             parameters * giga, memory.total() * giga, memory.parameters * giga,
             memory.gradients * giga, memory.optimizer * giga, memory.activations * giga);
}

Trace llm_c_step(const Options& o, const ModelShape& model) {
  const GptShape shape = shape_of(o, model);
  Trace trace = generate_gpt_trace(shape);
  say_memory(parameter_count(shape), memory_per_rank(shape));
  return trace;
}

Trace fused_step(const Options& o, const ModelShape& model) {
  const TrainingStep step = step_of(o, model);
  GeneratedStep generated = generate_training_step(step);
  fmt::print(stderr, "{}: {:.1f} TFLOP of each GPU that the model needs\n", generated.trace.name,
             model_flops(step) * 1e-12);
  say_memory(count_parameters(model).total, memory_per_rank(step));
  return std::move(generated.trace);
}

void refuse(const CommandLine& line, std::initializer_list<const char*> options, const char* why) {
  for (const char* option : options)
    if (line.has(option)) throw UsageError(fmt::format("{} is for {}", option, why));
}

void check(const Options& o, const CommandLine& line, bool fused) {
  if (fused) {
    refuse(line, {"--graph"}, "--kernels llm.c");
    refuse(line, {"--layers", "--hidden", "--heads", "--vocab"},
           "llm.c's kernels; the shape of another model goes into a file, docs/model-shapes.md");
  } else {
    refuse(line, {"--ep", "--attention", "--recompute"}, "--kernels fused");
  }
  if (o.graph && o.collectives == "none")
    throw UsageError("--graph puts collectives beside kernels; --collectives none has none");
  if (!o.graph) refuse(line, {"--zero", "--gpu", "--cluster"}, "--graph");
}

void generate(Options& o, const CommandLine& line) {
  const ModelShape model = load_model_shape(o.model);
  const bool is_fused = fused(o, model);
  check(o, line, is_fused);
  if (is_fused && !line.has("--optimizer")) o.optimizer = true;
  if (o.graph) return write_graph(o, model);
  write_file(o.out, as_file(is_fused ? fused_step(o, model) : llm_c_step(o, model), o.out));
}

void add_options(CommandLine& gen, Options& o) {
  gen.add_option(
         "MODEL,--model", o.model,
         fmt::format("{}, or a file of a shape (.json)", fmt::join(model_shape_names(), ", ")))
      ->capture_default_str();
  gen.add_option(
         "--kernels", o.kernels,
         "llm.c: as llm.c launches them; fused: flash attention, one GEMM for queries, keys "
         "and values, as fused frameworks do [llm.c for GPT models]")
      ->one_of({"llm.c", "fused"});
  gen.add_option("--batch", o.batch, "Sequences or images per GPU and step [40; fused: 1]");
  gen.add_option("--seq", o.seq, "Tokens per sequence [1024; fused: the model's context]");
  gen.add_option("--tp", o.tp, "Tensor-parallel degree (Megatron, with sequence parallelism)")
      ->capture_default_str();
  gen.add_option("--dp", o.dp, "Data-parallel replicas")->capture_default_str();
  gen.add_option("--ep", o.ep, "Expert-parallel degree, within the replicas of --dp")
      ->capture_default_str();
  gen.add_option("--attention", o.attention,
                 "Of fused kernels: flash, or unfused with the scores in memory")
      ->one_of({"flash", "unfused"})
      ->capture_default_str();
  gen.add_option("--recompute", o.recompute,
                 "Of fused kernels, what the backward pass runs again: none, selective (attention "
                 "alone) or full (whole layers)")
      ->one_of({"none", "selective", "full"})
      ->capture_default_str();
  gen.add_option("--collectives", o.collectives,
                 "model: with the collectives of --tp and --dp; none: kernels alone")
      ->one_of({"none", "model"})
      ->capture_default_str();
  gen.add_option("--layers", o.layers, "Layers [the model's]");
  gen.add_option("--hidden", o.hidden, "Hidden size [the model's]");
  gen.add_option("--heads", o.heads, "Attention heads [the model's]");
  gen.add_option("--vocab", o.vocab, "Vocabulary [50257]");
  gen.add_option("--dtype", o.dtype, "bf16, fp16 or fp32")->capture_default_str();
  gen.add_flag("--optimizer,!--no-optimizer", o.optimizer,
               "With gradient norm and AdamW, of llm.c also gradient clearing [no; fused: yes]");
  gen.add_flag("--graph", o.graph,
               "With --dp: one rank as a captured run, communication on a stream of its own beside "
               "the kernels, at the times the model gives default clocks: for explore and replay");
  gen.add_option("--zero", o.zero,
                 "Of --graph: 0 all-reduces DDP's buckets; 1, 2 shard the optimizer; 3 the "
                 "parameters too, as FSDP")
      ->one_of({"0", "1", "2", "3"})
      ->capture_default_str();
  gen.add_option("--gpu", o.gpu, "Of --graph: shipped name or file")->capture_default_str();
  gen.add_option(
      "--cluster", o.cluster,
      "Of --graph: shipped name or file, see rubato network [guessed from the GPU's link]");
  gen.add_option("-o,--output", o.out,
                 "File, .json or .csv (--graph: .json or .json.gz); - is "
                 "standard output")
      ->capture_default_str();
}

}  // namespace

void setup_trace_gen(CommandLine& app, Action& action) {
  auto o = std::make_shared<Options>();
  auto* gen = app.add_subcommand("gen", "Kernels of a training step from the shape of a model");
  add_options(*gen, *o);
  gen->footer(
      "\nExamples:\n  rubato trace gen gpt3-xl --batch 20 --tp 2 -o gpt3-xl-tp2.json\n"
      "  rubato trace gen llama3-70b --batch 1 --seq 4096 --tp 8 --recompute full -o llama.json\n"
      "  rubato trace gen gpt3-xl --batch 8 --dp 16 --graph --cluster dgx-a100 -o ddp.json");
  gen->final_callback([&action, o, gen] {
    action = [o, gen](const RunContext&) {
      generate(*o, *gen);
      return ExitStatus::done;
    };
  });
}

}  // namespace rubato
