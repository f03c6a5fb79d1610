#include "traces/transformer/parameters.hpp"

namespace rubato {

namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

double norm_parameters(const ModelShape& s) {
  // adaLN computes scale and shift, so a DiT's norms have none of their own.
  if (s.kind == ModelKind::dit) return 0.0;
  return s.norm == Norm::layernorm ? 2.0 * number(s.hidden) : number(s.hidden);
}

double attention_matrices(const ModelShape& s) {
  const double h = number(s.hidden);
  return h * (h + 2.0 * number(s.kv_width())) + h * h;
}

double ffn_matrices(const ModelShape& s) {
  return number(s.hidden) * (number(s.ffn_outputs()) + number(s.ffn));
}

double layer_biases(const ModelShape& s) {
  if (!s.biases) return 0.0;
  return 3.0 * number(s.hidden) + 2.0 * number(s.kv_width()) + number(s.ffn_outputs());
}

// Parameters outside the layers: those in products, by how often they are used, and others.
struct Ends {
  double per_token = 0.0, per_patch = 0.0, per_sample = 0.0, others = 0.0;
};

Ends ends_of(const ModelShape& s) {
  const double h = number(s.hidden), classes = number(s.image.classes);
  const double pixels = number(s.image.values_in_patch());
  switch (s.kind) {
    case ModelKind::decoder: {
      const double table = number(s.vocab) * h;
      const double positions =
          s.positions == PositionEncoding::learned ? number(s.context) * h : 0.0;
      return {table, 0.0, 0.0, (s.tied_embeddings ? 0.0 : table) + positions + norm_parameters(s)};
    }
    case ModelKind::vit:
      return {0.0, pixels * h, h * classes,
              h + h + number(s.tokens_per_image()) * h + norm_parameters(s) + classes};
    case ModelKind::dit:
      // Predicted: noise and variance of every channel. Frequencies of the time step: 256.
      return {0.0, (pixels + 2.0 * pixels) * h, h * (number(dit_frequencies) + h) + 2.0 * h * h,
              h + 2.0 * pixels + 4.0 * h + (classes + 1.0) * h};
  }
  return {};
}

// Of llm.c the vocabulary is padded, and positions are as many as tokens of a sequence.
double llm_c_parameters(const TrainingStep& step) {
  const double h = number(step.model.hidden);
  return number(step.model.layers) * (12.0 * h * h + 13.0 * h) +
         number(padded_vocabulary(step)) * h + number(step.seq) * h + 2.0 * h;
}

}  // namespace

ParameterCount count_parameters(const ModelShape& s) {
  const double h = number(s.hidden);
  const double modulation = s.kind == ModelKind::dit ? 6.0 * h * h : 0.0;
  const double experts = number(s.experts), chosen = number(s.experts_per_token);
  const double router = experts * h, one_ffn = ffn_matrices(s);
  const double shared = attention_matrices(s) + router;
  const double plain = layer_biases(s) + 2.0 * norm_parameters(s);

  ParameterCount count;
  count.layer_experts = experts * one_ffn;
  const double all_ffn = s.experts > 0 ? count.layer_experts : one_ffn;
  const double met_ffn = s.experts > 0 ? chosen * one_ffn : one_ffn;
  const double modulation_bias = s.kind == ModelKind::dit ? 6.0 * h : 0.0;
  count.layer = shared + all_ffn + plain + modulation + modulation_bias;

  const Ends ends = ends_of(s);
  const double layers = number(s.layers);
  const double outside = ends.per_token + ends.per_patch + ends.per_sample + ends.others;
  count.total = layers * count.layer + outside;
  count.active = count.total - layers * (all_ffn - met_ffn);
  count.per_token = layers * (shared + met_ffn) + ends.per_token;
  count.per_patch = ends.per_patch;
  count.per_sample = layers * modulation + ends.per_sample;
  return count;
}

double parameters_per_rank(const TrainingStep& step) {
  if (step.kernels == KernelStyle::llm_c)
    return llm_c_parameters(step) / number(step.tensor_parallel);
  const ParameterCount count = count_parameters(step.model);
  const double experts = number(step.model.layers) * count.layer_experts;
  const double copies =
      number(step.model.layers) * number(kv_copies(step) - 1) * kv_weights(step.model);
  return (count.total + copies - experts + experts / number(step.expert_parallel)) /
         number(step.tensor_parallel);
}

double kv_weights(const ModelShape& s) {
  return 2.0 * number(s.kv_width()) * (number(s.hidden) + (s.biases ? 1.0 : 0.0));
}

double model_flops(const TrainingStep& step) {
  const ModelShape& s = step.model;
  const ParameterCount count = count_parameters(s);
  const double batch = number(step.batch);
  const double class_tokens = s.kind == ModelKind::vit ? batch : 0.0;
  const double products = count.per_token * tokens(step) +
                          count.per_patch * (tokens(step) - class_tokens) +
                          count.per_sample * batch;
  const double attention = 4.0 * needed_pairs(step) * number(s.hidden) * number(s.layers);
  return (6.0 * products + 3.0 * attention) / number(step.tensor_parallel);
}

}  // namespace rubato
