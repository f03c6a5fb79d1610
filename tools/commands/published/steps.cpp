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
  double time_s;  // of a step of this batch
};

// Throughput of eight GPUs with their batches accumulated, in thousands of tokens a second.
PublishedStep accumulated(const char* model, std::string_view shape, std::uint64_t heads,
                          std::uint64_t batch, double ktokens_per_s) {
  constexpr double gpus = 8.0;
  TrainingStep step{.model = load_model_shape(shape), .batch = batch, .seq = 2048};
  step.model.heads = step.model.kv_heads = heads;
  step.optimizer = false;
  return {model, step, gpus * tokens(step) / (ktokens_per_s * 1e3)};
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

double modelled_s(const GpuSpec& spec, const TrainingStep& step) {
  const Trace trace = generate_training_step(step).trace;
  const GpuModel model(spec, trace);
  CompensatedSum time_s;
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  for (std::size_t k = 0; k < counts.size(); ++k)
    time_s.add(static_cast<double>(counts[k]) *
               model.evaluate(id_at<KernelId>(k), spec.default_clock).time_s);
  return time_s.value();
}

PublishedSection section_of(std::string key, std::string heading, std::string notes,
                            const std::vector<PublishedStep>& steps) {
  PublishedSection section{
      .key = std::move(key),
      .heading = std::move(heading),
      .seen =
          "Nothing of it: kernels at guessed shares of the peak rates, collectives on the "
          "network model, one after another.",
      .table = OutputTable({{"step"},
                            {"batch"},
                            {"published_ms", "published ms", 1},
                            {"ours_ms", "ours ms", 1},
                            {"ours_change_pct", "ours %", 1}}),
      .notes = std::move(notes)};
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  for (const PublishedStep& one : steps) {
    const double ours_s = modelled_s(spec, one.step);
    section.table.add_row({std::string(one.model), static_cast<std::int64_t>(one.step.batch),
                           one.time_s * ms_per_s, ours_s * ms_per_s,
                           (ours_s / one.time_s - 1.0) * percent});
  }
  return section;
}

}  // namespace

Reproduction training_steps() {
  const std::vector<PublishedStep> flash{accumulated("GPT3-125M", "gpt3-small", 12, 32, 1310.0),
                                         accumulated("GPT3-355M", "gpt3-medium", 16, 16, 503.0),
                                         accumulated("GPT3-760M", "gpt3-large", 16, 16, 245.0),
                                         accumulated("GPT3-1.3B", "gpt3-xl", 16, 8, 169.0),
                                         accumulated("GPT3-2.7B", "gpt3-2.7b", 20, 4, 85.0)};
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
                         "Dao-AILab/flash-attention 0b037c2, training/README.md and configs; its "
                         "throughput counts the optimizer and\nreductions after every few batches, "
                         "residuals in fp32 and the host, ours kernels alone.\n",
                         flash),
              section_of("megatron_22b", "Megatron-LM, GPT 22B, TP 8: one step",
                         "Korthikanti et al., arXiv 2205.05198, table 5, recalled: 1.10 s is the "
                         "41.5 % MFU it prints. Its full\nrecomputation is without sequence "
                         "parallelism; dropout is not run here.\n",
                         megatron)}};
}

}  // namespace rubato
