#include "traces/transformer/memory.hpp"

#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

// Bytes of attention alone: what selective recomputation does not keep.
double core_attention_bytes(const TrainingStep& step, const StepSizes& z) {
  constexpr double fp32 = 4.0;
  if (step.flash_attention) return fp32 * z.rows * z.heads;
  // Keys and values of every head, in place of those that heads share.
  return z.e * (z.pairs + 2.0 * (z.activation - z.rows * z.kv));
}

double ffn_elements(const TrainingStep& step, const StepSizes& z) {
  const ModelShape& s = step.model;
  const double between =
      z.rows * (static_cast<double>(s.ffn_outputs()) + static_cast<double>(s.ffn));
  if (s.experts == 0) return between;
  // Experts also keep what they gave, and the tokens as they came: each rank those of all.
  return static_cast<double>(s.experts_per_token) *
             (between + z.activation * (1.0 + static_cast<double>(z.t))) +
         z.rows * static_cast<double>(s.experts);
}

// Elements of a layer but for attention's own, all ranks of a tensor-parallel group together.
double kept_elements(const TrainingStep& step, const StepSizes& z) {
  const double norms = 4.0 * z.activation;  // inputs and outputs
  const double attention = z.activation + 2.0 * z.rows * z.kv + z.activation;
  // What both branches gave; shifts, scales and gates, and what made them.
  const double branches =
      step.model.kind == ModelKind::dit ? 2.0 * z.activation + 7.0 * z.batch * z.h : 0.0;
  return norms + attention + branches + ffn_elements(step, z);
}

// Elements kept behind the layers: input and output of the last norm, logits.
double end_elements(const TrainingStep& step, const StepSizes& z) {
  const double norm = 2.0 * z.activation;
  if (step.model.kind == ModelKind::decoder)
    return norm + z.rows * static_cast<double>(padded_vocabulary(step));
  if (step.model.kind == ModelKind::vit)
    return norm + z.batch * static_cast<double>(step.model.image.classes);
  return norm + 2.0 * z.rows * static_cast<double>(step.model.image.values_in_patch());
}

double layer_bytes(const TrainingStep& step, const StepSizes& z, bool core_attention) {
  return (z.e * kept_elements(step, z) + (core_attention ? core_attention_bytes(step, z) : 0.0)) /
         static_cast<double>(z.t);
}

// Bytes made again for the layer whose backward pass runs.
double made_again_bytes(const TrainingStep& step, const StepSizes& z) {
  switch (step.recomputation) {
    case Recomputation::none: return 0.0;
    case Recomputation::selective: return core_attention_bytes(step, z) / static_cast<double>(z.t);
    case Recomputation::full: return layer_bytes(step, z, true);
  }
  return 0.0;
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
  const double again = made_again_bytes(step, z);
  return {.parameters = z.e * parameters,
          .gradients = (step.fp32_gradients ? element_bytes(Dtype::fp32) : z.e) * parameters,
          .optimizer = step.optimizer ? state * parameters : 0.0,
          .activations = static_cast<double>(step.model.layers) * layer_activation_bytes(step) +
                         again + z.e * end_elements(step, z) / static_cast<double>(z.t)};
}

}  // namespace rubato
