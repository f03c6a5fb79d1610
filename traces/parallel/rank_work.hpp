#pragma once
// What one rank of a parallel training launches for one microbatch, in the parts that pipeline
// stages and data parallelism deal out. The one thing they need to know of a model.
// docs/parallel.md.

#include <cstdint>
#include <string>
#include <vector>

#include "traces/gpt.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// How the kernels of a layer are dealt out over GPUs, beside the tensor-parallel degree of its
/// shape, whose ranks are neighbours.
struct ModelSplit {
  /// Activations between the linear layers are split over the tensor-parallel ranks too: they are
  /// gathered before a layer's products and reduce-scattered behind them. False: all-reduces, and
  /// every rank does all of what lies between.
  bool sequence_parallel = true;
  std::uint32_t context = 1;  ///< ranks that share a sequence: ring attention
  std::uint32_t experts = 0;  ///< of each layer's MLP; 0: it is dense
  std::uint32_t top_k = 2;    ///< experts a token goes to
  std::uint32_t expert = 1;   ///< ranks that share the experts of a layer, out of the data-parallel

  friend bool operator==(const ModelSplit&, const ModelSplit&) = default;
};

/// Attention with the sequence on several ranks: each holds the queries of its part; keys and
/// values go round. What is sent is of one layer and microbatch, by each rank.
struct AttentionRing {
  std::uint32_t ranks = 1;
  KernelId send_kv;      ///< a block of keys and values to the next rank
  KernelId send_dkv;     ///< its gradients
  KernelId merge;        ///< adds the output of one block to those before
  KernelId merge_grads;  ///< adds the gradients of one block
};

/// Kernels of one rank. Collectives inside a layer (of tensor- and expert-parallel groups) stand in
/// the lists, where they would be waited for. Work figures are per launch.
struct RankWork {
  using Launches = std::vector<KernelId>;

  std::string name;
  std::vector<Kernel> kernels;  ///< unique names
  /// Of one layer: forward, backward. Of the first and last stage: embedding, loss and what begins
  /// the backward pass; once in a step: clearing of gradients, optimizer. May be empty but for the
  /// layer's.
  Launches clearing, embedding, forward, loss, head_backward, backward, embedding_backward,
      optimizer;
  /// Elements whose gradients are ready when the kernel ends, of this rank, shape [kernels].
  std::vector<double> gradients;
  std::vector<bool> of_expert;  ///< those gradients belong to experts, shape [kernels]
  std::uint64_t layers = 1;
  /// Of the token table's gradients, those of the last stage: copies, no parameters of their own.
  double copied = 0.0;
  double boundary_elements = 0.0;  ///< activations from one layer to the next, of this rank
  Dtype dtype = Dtype::bf16;
  ModelSplit split;
  AttentionRing ring;

  /// Gradient elements of a list of launches.
  [[nodiscard]] double gradients_of(const Launches& launches) const;
  /// Parameters of this rank: all layers, embedding and head; a copy does not count.
  [[nodiscard]] double parameters() const;
  [[nodiscard]] const Kernel& kernel(KernelId id) const { return kernels[index(id)]; }
};

/// Kernels that make up the attention of a layer: products of heads, their softmax, or one fused
/// kernel. A ring repeats them for every block of keys and values.
[[nodiscard]] bool is_attention(const Kernel& kernel);

/// The kernels of a GPT step (generate_gpt_trace) for one of `split`.
/// @param shape  its batch is one microbatch; data_parallel counts for nothing
/// @param own_head  the last stage is not the first: it has a gradient of the token table too
/// @throws UsageError as generate_gpt_trace; if a degree is 0 or does not divide what it splits; if
///         there are expert-parallel ranks and no experts, or experts and tensor-parallel ranks
[[nodiscard]] RankWork gpt_rank_work(const GptShape& shape, const ModelSplit& split,
                                     bool own_head = false);

}  // namespace rubato
