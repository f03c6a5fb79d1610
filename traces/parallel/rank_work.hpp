#pragma once
// What one rank of a parallel training launches for one microbatch, in the parts that pipeline
// stages and data parallelism deal out. They need to know nothing else of a model.
// docs/parallel.md.

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// Ring attention: the sequence lies on several ranks. Each holds the queries of its part; keys and
/// values go round. What is sent is of one layer and microbatch, by each rank.
struct AttentionRing {
  std::uint32_t ranks = 1;
  KernelId send_kv;      ///< a block of keys and values to the next rank
  KernelId send_dkv;     ///< its gradients
  KernelId merge;        ///< adds the output of one block to those before
  KernelId merge_grads;  ///< adds the gradients of one block
  /// For each kernel, the one that does its work on keys and values of another rank; the kernel
  /// itself where that is the same. The work differs: where attention is causal, ranks hold an
  /// early and a late piece of the sequence, and half of each block is masked. Shape [kernels of
  /// the model].
  std::vector<KernelId> of_other_block;
};

/// Kernels of one rank. Collectives inside a layer (of tensor- and expert-parallel groups) stand in
/// the lists, where they would be waited for. Work figures are per launch.
struct RankWork {
  using Launches = std::vector<KernelId>;

  std::vector<Kernel> kernels;  ///< unique names
  /// Of one layer: `forward`, `backward`. Of the first stage: `embedding`, `embedding_backward`. Of
  /// the last stage: `loss`, and `head_backward`, which begins the backward pass. Once in a step:
  /// `clearing` of gradients, `optimizer`. All but those of the layer may be empty.
  Launches clearing, embedding, forward, loss, head_backward, backward, embedding_backward,
      optimizer;
  /// Elements whose gradients are ready when the kernel ends, of this rank, shape [kernels].
  std::vector<double> gradients;
  std::vector<KernelPart> parts;  ///< shape [kernels]
  std::uint64_t layers = 1;
  /// Gradient elements of the copy of a token table: where the table is the head too and the last
  /// stage is not the first, the last stage has a copy. Copies are no parameters of their own.
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

/// The kernels of a step for one rank, without the reduction of gradients over replicas.
/// @param step  its batch is one microbatch; all degrees count
/// @param own_head  the last stage is not the first: it has a gradient of its token table too
/// @throws UsageError as check(TrainingStep)
[[nodiscard]] RankWork rank_work(const TrainingStep& step, bool own_head = false);

}  // namespace rubato
