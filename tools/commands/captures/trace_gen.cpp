// rubato trace gen: the kernels of a training step from a model's shapes.

#include <memory>

#include <fmt/format.h>

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

namespace rubato {

namespace {

struct Options {
  std::string preset = "gpt3-xl";
  std::optional<std::uint64_t> layers, hidden, heads, vocab;
  std::uint64_t batch = 40, seq = 1024, tp = 1, dp = 1;
  std::string dtype = "bf16", collectives = "model", out = "-";
  bool optimizer = false, graph = false;
  std::string gpu = "a100-sxm4-80gb", cluster, zero = "0";
};

GptShape shape_of(const Options& o) {
  GptShape shape = gpt_preset(o.preset);
  shape.layers = o.layers.value_or(shape.layers);
  shape.hidden = o.hidden.value_or(shape.hidden);
  shape.heads = o.heads.value_or(shape.heads);
  shape.vocab = o.vocab.value_or(shape.vocab);
  shape.batch = o.batch;
  shape.seq = o.seq;
  shape.tensor_parallel = o.tp;
  shape.data_parallel = o.dp;
  shape.optimizer = o.optimizer;
  shape.collectives = o.collectives == "model";
  const auto dtype = from_name<Dtype>(o.dtype);
  if (!dtype || *dtype == Dtype::unknown) {
    throw UsageError(fmt::format("--dtype '{}' is not known{}", o.dtype,
                                 did_you_mean(o.dtype, all_names<Dtype>())));
  }
  shape.dtype = *dtype;
  return shape;
}

// Stages 1 and 2 differ in what they hold, not in what they send in a step of one pass.
Sharding sharding_of(const std::string& zero) {
  if (zero == "0") return Sharding::none;
  return zero == "3" ? Sharding::parameters : Sharding::optimizer;
}

void write_graph(const Options& o) {
  ParallelStepInput input{.shape = shape_of(o),
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

void check(const Options& o, const CommandLine& line) {
  if (o.graph && o.collectives == "none")
    throw UsageError("--graph puts collectives beside kernels; --collectives none has none");
  if (o.graph) return;
  for (const char* option : {"--zero", "--gpu", "--cluster"})
    if (line.has(option)) throw UsageError(fmt::format("{} is for --graph", option));
}

void add_options(CommandLine& gen, Options& o) {
  gen.add_option("MODEL", o.preset, "gpt3-small, -medium, -large, -xl, -2.7b, -6.7b, -13b or -175b")
      ->capture_default_str();
  gen.add_option("--batch", o.batch, "Sequences per GPU and step")->capture_default_str();
  gen.add_option("--seq", o.seq, "Tokens per sequence")->capture_default_str();
  gen.add_option("--tp", o.tp, "Tensor-parallel degree (Megatron, with sequence parallelism)")
      ->capture_default_str();
  gen.add_option("--dp", o.dp, "Data-parallel replicas")->capture_default_str();
  gen.add_option("--collectives", o.collectives,
                 "model: with the collectives of --tp and --dp; none: kernels alone")
      ->one_of({"none", "model"})
      ->capture_default_str();
  gen.add_option("--layers", o.layers, "Layers [the model's]");
  gen.add_option("--hidden", o.hidden, "Hidden size [the model's]");
  gen.add_option("--heads", o.heads, "Attention heads [the model's]");
  gen.add_option("--vocab", o.vocab, "Vocabulary [50257]");
  gen.add_option("--dtype", o.dtype, "bf16, fp16 or fp32")->capture_default_str();
  gen.add_flag("--optimizer", o.optimizer, "Add gradient clearing, gradient norm and AdamW");
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
  auto* gen = app.add_subcommand("gen", "Kernels of a GPT training step from its shapes");
  add_options(*gen, *o);
  gen->footer(
      "\nExamples:\n  rubato trace gen gpt3-xl --batch 20 --tp 2 -o gpt3-xl-tp2.json\n"
      "  rubato trace gen gpt3-xl --batch 8 --dp 16 --graph --cluster dgx-a100 -o ddp.json");
  gen->final_callback([&action, o, gen] {
    action = [o, gen](const RunContext&) {
      check(*o, *gen);
      if (o->graph) {
        write_graph(*o);
      } else {
        write_file(o->out, as_file(generate_gpt_trace(shape_of(*o)), o->out));
      }
      return ExitStatus::done;
    };
  });
}

}  // namespace rubato
