#pragma once
// What one rank of a parallel training launches for one microbatch, in the parts that pipeline
// stages and data parallelism deal out. The one thing they need to know of a model.
// docs/parallel.md.

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Attention with the sequence on several ranks: each holds the queries of its part; keys and
/// values go round. What is sent is of one layer and microbatch, by each rank.
struct AttentionRing {
  std::uint32_t ranks = 1;
  KernelId send_kv;      ///< a block of keys and values to the next rank
  KernelId send_dkv;     ///< its gradients
  KernelId merge;        ///< adds the output of one block to those before
  KernelId merge_grads;  ///< adds the gradients of one block
  /// What a kernel of attention is for keys and values of another rank: where attention is causal,
  /// ranks hold an early and a late piece of the sequence, and half of each block is masked. Shape
  /// [kernels of the model].
  std::vector<KernelId> of_other_block;
};

/// Kernels of one rank. Collectives inside a layer (of tensor- and expert-parallel groups) stand in
/// the lists, where they would be waited for. Work figures are per launch.
struct RankWork {
  using Launches = std::vector<KernelId>;

  std::vector<Kernel> kernels;  ///< unique names
  /// Of one layer: forward, backward. Of the first and last stage: embedding, loss and what begins
  /// the backward pass; once in a step: clearing of gradients, optimizer. May be empty but for the
  /// layer's.
  Launches clearing, embedding, forward, loss, head_backward, backward, embedding_backward,
      optimizer;
  /// Elements whose gradients are ready when the kernel ends, of this rank, shape [kernels].
  std::vector<double> gradients;
  std::vector<KernelPart> parts;  ///< shape [kernels]
  std::uint64_t layers = 1;
  /// Of a token table that is the head too, the gradients of the last stage: copies, no parameters
  /// of their own.
  double copied = 0.0;
  double boundary_elements = 0.0;  ///< activations from one layer to the next, of this rank
  Dtype dtype = Dtype::bf16;
  AttentionRing ring;

  /// Gradient elements of a list of launches, of experts and of all else.
  struct Elements {
    double dense = 0.0, of_experts = 0.0;

    [[nodiscard]] double all() const noexcept { return dense + of_experts; }
  };
  [[nodiscard]] Elements gradients_of(const Launches& launches) const;
  /// Parameters of this rank: all layers, embedding and head; a copy does not count.
  [[nodiscard]] double parameters() const;
  [[nodiscard]] const Kernel& kernel(KernelId id) const { return kernels[index(id)]; }
  [[nodiscard]] KernelPart part(KernelId id) const { return parts[index(id)]; }
};

/// The kernels of a step for one rank, no gradient of replicas reduced.
/// @param step  its batch is one microbatch; all degrees count
/// @param own_head  the last stage is not the first: it has a gradient of its token table too
/// @throws UsageError as check(TrainingStep), and for llm.c's kernels as gpt_shape
[[nodiscard]] RankWork rank_work(const TrainingStep& step, bool own_head = false);

}  // namespace rubato
