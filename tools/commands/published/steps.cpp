#include "tools/commands/published/steps.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/published.hpp"
#include "models/gpu/spec.hpp"
#include "models/table/gpu_model.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

namespace {

struct PublishedStep {
  std::string name;
  TrainingStep step;
  double time_s;       // of a batch of this size
  double accumulated;  // such batches to one reduction of the gradients and one update
};

PublishedStep published_step(const PublishedTable& table, std::size_t row) {
  const auto number = [&](const char* column) -> std::optional<double> {
    if (table.text(row, column).empty()) return std::nullopt;
    return table.number(row, column);
  };
  TrainingStep step{.model = load_model_shape(table.text(row, "model")),
                    .batch = table.count(row, "batch"),
                    .seq = 2048};
  ModelShape& model = step.model;
  for (const auto& [column, size] : {std::pair{"layers", &model.layers},
                                     {"hidden", &model.hidden},
                                     {"heads", &model.heads},
                                     {"vocab", &model.vocab}})
    if (const auto given = number(column)) *size = static_cast<std::uint64_t>(*given);
  model.kv_heads = model.heads;
  model.ffn = 4 * model.hidden;
  step.data_parallel = table.count(row, "dp");
  step.tensor_parallel = table.count(row, "tp");
  step.flash_attention = table.text(row, "attention") == "flash";
  if (const std::string& made_again = table.text(row, "recompute"); !made_again.empty())
    step.recomputation = recomputation_from_name(made_again);
  const double replicas = static_cast<double>(step.data_parallel);
  const auto time_s = number("time_s");
  return {table.text(row, "step"), step,
          time_s ? *time_s : replicas * tokens(step) / (table.number(row, "ktokens_per_s") * 1e3),
          table.number(row, "sequences_an_update") / (replicas * static_cast<double>(step.batch))};
}

std::vector<PublishedStep> published_steps(std::string_view section) {
  const PublishedTable table("training_steps");
  std::vector<PublishedStep> steps;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (table.text(row, "section") == section) steps.push_back(published_step(table, row));
  return steps;
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

PublishedSection section_of(std::string key, std::string heading, std::string notes) {
  const std::vector<PublishedStep> steps = published_steps(key);
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
    section.table.add_row({one.name, static_cast<std::int64_t>(one.step.batch),
                           static_cast<std::int64_t>(one.accumulated), one.time_s * ms_per_s,
                           ours_s * ms_per_s, (ours_s / one.time_s - 1.0) * percent});
  }
  section.differences = {off};
  return section;
}

}  // namespace

Reproduction training_steps() {
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
                         "of the model. Both happen once in as many batches as theirs.\n"),
              section_of("megatron_22b", "Megatron-LM, GPT 22B, TP 8: one step",
                         "Korthikanti et al., arXiv 2205.05198, table 5, recalled: 1.10 s is the "
                         "41.5 % MFU it prints. Its full recomputation is without sequence "
                         "parallelism; dropout is not run here.\n")}};
}

}  // namespace rubato
