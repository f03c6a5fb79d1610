#pragma once
// How many parameters a model has, and what multiplies with them.

#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Parameters of a model, in elements.
struct ParameterCount {
  double layer = 0.0;          ///< of one layer with all its experts
  double layer_experts = 0.0;  ///< of these, those in experts
  double total = 0.0;
  double active = 0.0;  ///< those a token meets: experts_per_token of the experts
  /// Active parameters in matrix products, by how often a sample is multiplied with them: for each
  /// token, for each patch, or once for each sequence or image. To look a token up is no product,
  /// so a token table counts as the head only.
  double per_token = 0.0, per_patch = 0.0, per_sample = 0.0;
};

[[nodiscard]] ParameterCount count_parameters(const ModelShape& shape);

/// Number of parameters on one rank: a tensor-parallel share of all of them and of copied heads of
/// keys and values; experts are shared out over expert-parallel ranks besides. Norms, routers and
/// biases that each rank has whole count as divided. llm.c pads the vocabulary, and its table of
/// positions has as many rows as a sequence has tokens.
[[nodiscard]] double parameters_per_rank(const TrainingStep& step);

/// Number of parameters of a layer that make keys and values.
[[nodiscard]] double kv_weights(const ModelShape& shape);

/// FLOPs of a rank's step that the model needs, whatever is run (as in model FLOPs utilization,
/// MFU). These are 6 per parameter and token (2 forward, 4 backward), and three times the two
/// products of attention. Of causal attention the half counts that is not masked. Source: Narayanan
/// et al., arXiv 2104.04473, section 5.1, without recomputation; there the masked half counts too.
[[nodiscard]] double model_flops(const TrainingStep& step);

}  // namespace rubato
