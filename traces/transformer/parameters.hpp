#pragma once
// How many parameters a model has, and what multiplies with them.

#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Parameters of a model, in elements.
struct ParameterCount {
  double layer = 0.0;          ///< of one layer, all its experts with it
  double layer_experts = 0.0;  ///< of them in experts
  double total = 0.0;
  double active = 0.0;  ///< those a token meets: experts_per_token of the experts
  /// Of the active ones those in matrix products, by how often a sample multiplies with them: for
  /// each token, each patch, each sequence or image. A token table that is not the head is in none.
  double per_token = 0.0, per_patch = 0.0, per_sample = 0.0;
};

[[nodiscard]] ParameterCount count_parameters(const ModelShape& shape);

/// Parameters on one rank: a tensor-parallel share of all and of copied heads of keys and values,
/// experts shared out besides. Norms, routers and biases that each rank has whole count as divided.
[[nodiscard]] double parameters_per_rank(const TrainingStep& step);

/// Parameters of a layer that make keys and values.
[[nodiscard]] double kv_weights(const ModelShape& shape);

/// FLOPs of a rank's step that the model needs, whatever is run: 6 per parameter and token (2
/// forward, 4 backward), and three times the two products of attention, of causal attention the
/// half that is not masked. Source: Narayanan et al., arXiv 2104.04473, section 5.1, without
/// recomputation; that counts the masked half too.
[[nodiscard]] double model_flops(const TrainingStep& step);

}  // namespace rubato
