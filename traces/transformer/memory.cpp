#include "traces/transformer/memory.hpp"

#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

// Of attention alone: what selective recomputation does not keep.
double core_attention_bytes(const TrainingStep& step, const StepSizes& z) {
  constexpr double fp32 = 4.0;
  return step.flash_attention ? fp32 * z.rows * z.heads : z.e * z.pairs;
}

double ffn_elements(const TrainingStep& step, const StepSizes& z) {
  const ModelShape& s = step.model;
  const double between =
      z.rows * (static_cast<double>(s.ffn_outputs()) + static_cast<double>(s.ffn));
  if (s.experts == 0) return between;
  // Experts also keep the tokens as they came and what they gave.
  return static_cast<double>(s.experts_per_token) * (between + 2.0 * z.activation) +
         z.rows * static_cast<double>(s.experts);
}

// Everything of a layer but attention's own, all ranks of a tensor-parallel group together.
double kept_elements(const TrainingStep& step, const StepSizes& z) {
  const double norms = 4.0 * z.activation;  // inputs and outputs
  const double attention = z.activation + 2.0 * z.rows * z.kv + z.activation;
  const double branches = step.model.kind == ModelKind::dit ? 2.0 * z.activation : 0.0;
  return norms + attention + branches + ffn_elements(step, z);
}

// Behind the layers: input and output of the last norm, logits.
double end_elements(const TrainingStep& step, const StepSizes& z) {
  const double norm = 2.0 * z.activation;
  if (step.model.kind == ModelKind::decoder)
    return norm + z.rows * static_cast<double>(padded_vocabulary(step));
  if (step.model.kind == ModelKind::vit)
    return norm + z.batch * static_cast<double>(step.model.image.classes);
  const ImageShape& image = step.model.image;
  return norm + 2.0 * z.rows * static_cast<double>(image.patch * image.patch * image.channels);
}

double layer_bytes(const TrainingStep& step, const StepSizes& z, bool core_attention) {
  return (z.e * kept_elements(step, z) + (core_attention ? core_attention_bytes(step, z) : 0.0)) /
         static_cast<double>(z.t);
}

}  // namespace

double layer_activation_bytes(const TrainingStep& step) {
  const StepSizes z(step);
  if (step.recomputation == Recomputation::full)
    return z.e * z.activation / static_cast<double>(z.t);
  return layer_bytes(step, z, step.recomputation == Recomputation::none);
}

MemoryPerRank memory_per_rank(const TrainingStep& step) {
  const StepSizes z(step);
  const double parameters = parameters_per_rank(step);
  const double state = step.dtype == Dtype::fp32 ? 8.0 : 12.0;
  const double again = step.recomputation == Recomputation::full ? layer_bytes(step, z, true) : 0.0;
  return {.parameters = z.e * parameters,
          .gradients = z.e * parameters,
          .optimizer = step.optimizer ? state * parameters : 0.0,
          .activations = static_cast<double>(step.model.layers) * layer_activation_bytes(step) +
                         again + z.e * end_elements(step, z) / static_cast<double>(z.t)};
}

}  // namespace rubato
