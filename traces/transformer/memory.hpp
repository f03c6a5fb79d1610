#pragma once
// What a rank holds in memory, by formula.

#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Bytes of one rank. Not in it: buffers of collectives, workspaces, fragmentation.
struct MemoryPerRank {
  double parameters = 0.0;
  double gradients = 0.0;
  double optimizer = 0.0;  ///< AdamW: two moments in fp32, and master weights unless fp32 are kept
  double activations = 0.0;  ///< kept for the backward pass when it begins

  [[nodiscard]] double total() const noexcept {
    return parameters + gradients + optimizer + activations;
  }
};

/// Bytes that one layer keeps for its backward pass on this rank: inputs of products, norms,
/// attention and activation, but not the statistics of norms. Example: a GPT layer in 16 bits keeps
/// 32 s b h / t bytes, attention's own aside (s tokens of a sequence, b sequences, hidden size h,
/// tensor-parallel degree t). Source: Korthikanti et al., arXiv 2205.05198, equation 4, less the
/// 2 s b h / t of the masks of dropout, which is not run.
[[nodiscard]] double layer_activation_bytes(const TrainingStep& step);

/// What a rank holds. Activations include what one layer makes again: all of it (full
/// recomputation), or attention's own (selective). With fp8 and nvfp4 weights and activations count
/// as the 16 bits of which their copies are made. Eager kernels keep weights in fp32, and what each
/// operator saves.
[[nodiscard]] MemoryPerRank memory_per_rank(const TrainingStep& step);

}  // namespace rubato
