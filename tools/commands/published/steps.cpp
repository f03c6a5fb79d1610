#include "tools/commands/published/steps.hpp"

#include <vector>

#include "common/numbers.hpp"
#include "models/gpu/spec.hpp"
#include "models/table/gpu_model.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

struct PublishedStep {
  const char* model;
  TrainingStep step;
  double time_s;             // of a batch of this size
  double accumulated = 1.0;  // such batches to one reduction of the gradients and one update
};

// Throughput of eight replicas in thousands of tokens a second, each update after `sequences`.
PublishedStep replicated(const char* model, std::string_view shape, std::uint64_t heads,
                         std::uint64_t batch, std::uint64_t sequences, double ktokens_per_s) {
  constexpr std::uint64_t gpus = 8;
  TrainingStep step{.model = load_model_shape(shape), .batch = batch, .seq = 2048};
  step.model.heads = step.model.kv_heads = heads;
  step.data_parallel = gpus;
  return {model, step, static_cast<double>(gpus) * tokens(step) / (ktokens_per_s * 1e3),
          static_cast<double>(sequences) / static_cast<double>(gpus * batch)};
}

// GPT 22B on one node of eight GPUs, four sequences at once.
PublishedStep megatron_22b(const char* model, Recomputation recomputation, double time_s) {
  TrainingStep step{.model = load_model_shape("gpt3-175b"), .batch = 4, .seq = 2048};
  step.model.layers = 48;
  step.model.hidden = 6144;
  step.model.heads = step.model.kv_heads = 64;
  step.model.ffn = 4 * step.model.hidden;
  step.model.vocab = 51200;
  step.tensor_parallel = 8;
  step.flash_attention = false;
  step.recomputation = recomputation;
  return {model, step, time_s};
}

// Time of a batch in the model, with its share of what follows the last batch. Where batches are
// accumulated there is no tensor parallelism, so that all collectives are reductions of gradients.
double modelled_s(const GpuSpec& spec, const PublishedStep& one) {
  const Trace trace = generate_training_step(one.step).trace;
  const GpuModel model(spec, trace);
  CompensatedSum time_s;
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const Kernel& kernel = trace.kernels[k];
    const bool after_last = kernel.pass == Pass::optimizer || kernel.collective.has_value();
    time_s.add(static_cast<double>(counts[k]) / (after_last ? one.accumulated : 1.0) *
               model.evaluate(id_at<KernelId>(k), spec.default_clock).time_s);
  }
  return time_s.value();
}

PublishedSection section_of(std::string key, std::string heading, std::string notes,
                            const std::vector<PublishedStep>& steps) {
  PublishedSection section{
      .key = std::move(key),
      .heading = std::move(heading),
      .seen =
          "Not fitted to any of it: kernels run at guessed shares of the peak rates, collectives "
          "take what the network model says, one after another.",
      .table = OutputTable({{"step"},
                            {"batch"},
                            {"batches_an_update", "batches an update"},
                            {"published_ms", "published ms", 1},
                            {"ours_ms", "ours ms", 1},
                            {"ours_change_pct", "ours %", 1}}),
      .notes = std::move(notes)};
  Difference off{
      .what = "Time of training steps (" + section.heading + ")", .unit = "%", .headline = true};
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  for (const PublishedStep& one : steps) {
    const double ours_s = modelled_s(spec, one);
    off.add(0.0, (ours_s / one.time_s - 1.0) * percent);
    section.table.add_row({std::string(one.model), static_cast<std::int64_t>(one.step.batch),
                           static_cast<std::int64_t>(one.accumulated), one.time_s * ms_per_s,
                           ours_s * ms_per_s, (ours_s / one.time_s - 1.0) * percent});
  }
  section.differences = {off};
  return section;
}

}  // namespace

Reproduction training_steps() {
  const std::vector<PublishedStep> flash{replicated("GPT3-125M", "gpt3-small", 12, 32, 256, 1310.0),
                                         replicated("GPT3-355M", "gpt3-medium", 16, 16, 256, 503.0),
                                         replicated("GPT3-760M", "gpt3-large", 16, 16, 256, 245.0),
                                         replicated("GPT3-1.3B", "gpt3-xl", 16, 8, 512, 169.0),
                                         replicated("GPT3-2.7B", "gpt3-2.7b", 20, 4, 512, 85.0)};
  const std::vector<PublishedStep> megatron{
      megatron_22b("22B, full recomputation", Recomputation::full, 1.42),
      megatron_22b("22B, selective recomputation", Recomputation::selective, 1.10)};
  return {.name = "steps",
          .title =
              "Times of whole training steps on A100-SXM4-80GB at default clocks; shapes and "
              "kernels: docs/model-shapes.md.",
          .sections = {
              section_of("flash_attention",
                         "FlashAttention, 8 GPUs, sequences of 2048: one batch of each GPU",
                         "Dao-AILab/flash-attention 0b037c2, training/README.md and configs. What "
                         "was measured has residuals and gradients in fp32, reductions beside the "
                         "backward pass, a sharded optimizer from 1.3B on, and the host. Ours "
                         "reduces gradients in 16 bits after the kernels, and each GPU updates all "
                         "of the model. Both happen once in as many batches as theirs.\n",
                         flash),
              section_of("megatron_22b", "Megatron-LM, GPT 22B, TP 8: one step",
                         "Korthikanti et al., arXiv 2205.05198, table 5, recalled: 1.10 s is the "
                         "41.5 % MFU it prints. Its full recomputation is without sequence "
                         "parallelism; dropout is not run here.\n",
                         megatron)}};
}

}  // namespace rubato
