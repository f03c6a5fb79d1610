#include "traces/transformer/memory.hpp"

#include "traces/transformer/layer_kernels.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

// What each operator of eager kernels saves, bytes. Of attention: scores in fp32 behind softmax,
// the mask of dropout, and their copy in the products' type.
double eager_core_bytes(const TrainingStep& step, const StepSizes& z) {
  constexpr double fp32 = 4.0;
  if (step.flash_attention) return fp32 * z.rows * z.heads;
  const double mask = step.model.has_dropout() && step.dropout ? 1.0 : 0.0;
  const double copy = z.e < fp32 || mask > 0.0 ? z.e : 0.0;
  return (fp32 + mask + copy) * z.pairs + z.e * 2.0 * (z.activation - z.rows * z.kv);
}

// Bytes of attention alone: what selective recomputation does not keep.
double core_attention_bytes(const TrainingStep& step, const StepSizes& z) {
  if (step.kernels == KernelStyle::eager) return eager_core_bytes(step, z);
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

// Norms save their fp32 input, products theirs. GELU of GPT: its input, half of it, tanh and tanh
// plus 1, of others its input; SwiGLU: the gate, SiLU of it, and the other half.
double eager_layer_bytes(const TrainingStep& step, const StepSizes& z, bool core_attention) {
  constexpr double fp32 = 4.0;
  const ModelShape& s = step.model;
  const double ffn = z.rows * static_cast<double>(s.ffn);
  const double masks = s.has_dropout() && step.dropout ? 2.0 * z.activation : 0.0;
  const double saved = s.activation == Activation::swiglu ? 3.0 : (is_gpt(s) ? 4.0 : 1.0);
  return (fp32 * 2.0 * z.activation + z.e * (4.0 * z.activation + 2.0 * z.rows * z.kv) + masks +
          z.e * (saved + 1.0) * ffn + (core_attention ? eager_core_bytes(step, z) : 0.0)) /
         static_cast<double>(z.t);
}

double layer_bytes(const TrainingStep& step, const StepSizes& z, bool core_attention) {
  if (step.kernels == KernelStyle::eager) return eager_layer_bytes(step, z, core_attention);
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

namespace {

// Per layer llm.c keeps the residual stream and the output of the norms twice each, queries, keys
// and values, what attention gives, the FFN before its GELU (12 times `width` so far), and the
// attention weights. Outside of the layers it keeps the embedding, the last norm, one GELU that is
// made again (6 times `width`), and the logits.
MemoryPerRank llm_c_memory(const TrainingStep& step) {
  const StepSizes z(step);
  const double t = static_cast<double>(z.t), layers = static_cast<double>(step.model.layers);
  const double weights = z.rows * z.heads * static_cast<double>(own_seq(step));
  const double outside = 6.0 * z.activation + z.rows * static_cast<double>(padded_vocabulary(step));
  const double parameters = parameters_per_rank(step);
  constexpr double moments_and_master = 12.0;
  return {.parameters = z.e * parameters,
          .gradients = z.e * parameters,
          .optimizer = step.optimizer ? moments_and_master * parameters : 0.0,
          .activations = z.e * (layers * (12.0 * z.activation + weights) + outside) / t};
}

}  // namespace

MemoryPerRank memory_per_rank(const TrainingStep& step) {
  if (step.kernels == KernelStyle::llm_c) return llm_c_memory(step);
  const StepSizes z(step);
  const double parameters = parameters_per_rank(step);
  if (step.phase != StepPhase::training)  // the cache, and what one layer has at a time
    return {
        .parameters = z.e * parameters,
        .activations = (z.e * (static_cast<double>(step.model.layers) * z.batch *
                                   static_cast<double>(step.seq) * 2.0 * z.kv +
                               kept_elements(step, z)) +
                        (step.kernels == KernelStyle::eager ? eager_core_bytes(step, z) : 0.0)) /
                       static_cast<double>(z.t)};
  const bool own_master =
      step.dtype == Dtype::fp32 || step.kernels == KernelStyle::eager;  // weights in fp32
  const double state = own_master ? 8.0 : 12.0;
  const double weight = own_master ? element_bytes(Dtype::fp32) : z.e;
  const double again = made_again_bytes(step, z);
  return {.parameters = weight * parameters,
          .gradients = (step.fp32_gradients ? element_bytes(Dtype::fp32) : weight) * parameters,
          .optimizer = step.optimizer ? state * parameters : 0.0,
          .activations = static_cast<double>(step.model.layers) * layer_activation_bytes(step) +
                         again + z.e * end_elements(step, z) / static_cast<double>(z.t)};
}

}  // namespace rubato
