#pragma once
// One training step of a transformer, as frameworks launch it: what one rank runs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/model_shape.hpp"

namespace rubato {

/// What the backward pass runs again instead of having kept it (Korthikanti et al., arXiv
/// 2205.05198).
enum class Recomputation {
  none,
  selective,  ///< scores, softmax and their product with the values: Megatron's core attention
  full        ///< a whole layer from its input
};

/// Whose kernels a step launches.
enum class KernelStyle : std::uint8_t {
  fused,  ///< frameworks that fuse: flash attention, norms with their residual, one AdamW
  eager,  ///< PyTorch operator by operator, as Hugging Face's models call it
  llm_c   ///< llm_c_kernels.hpp: GPT models
};

/// What products of fp32 operands compute in, as torch.set_float32_matmul_precision has it: fp32 on
/// CUDA cores (highest) or tf32 on tensor cores. On NVIDIA GPUs PyTorch does the same for high and
/// medium.
enum class MatmulPrecision : std::uint8_t { highest, high, medium };

[[nodiscard]] std::string_view name_of(Recomputation value) noexcept;
[[nodiscard]] std::string_view name_of(KernelStyle value) noexcept;  ///< "fused", "eager", "llm.c"
/// @throws UsageError
[[nodiscard]] Recomputation recomputation_from_name(std::string_view name);

/// What a step does: a training iteration, the prompts of a batch (prefill), or one more token for
/// each sequence of a batch, whose keys and values lie in the cache (decode).
enum class StepPhase : std::uint8_t { training, prefill, decode };

[[nodiscard]] std::string_view name_of(StepPhase value) noexcept;

/// A step of a rank: the model, the rank's share of the batch, and how it is run.
struct TrainingStep {
  ModelShape model;
  std::uint64_t batch = 1;  ///< sequences or images of a rank
  /// Tokens of a sequence, at most the context; of images: tokens of one. Of decode: tokens that
  /// the new one attends to, itself included.
  std::uint64_t seq = 0;
  StepPhase phase = StepPhase::training;
  /// bf16, fp16, fp32, fp8 or nvfp4; of the last two the layers' matrices alone, the rest is bf16.
  /// Eager kernels in 16 bits are those of torch.autocast in training, and of a model whose weights
  /// are in 16 bits in prefill.
  Dtype dtype = Dtype::bf16;
  MatmulPrecision matmul_precision = MatmulPrecision::highest;
  KernelStyle kernels = KernelStyle::fused;
  std::uint64_t tensor_parallel = 1;  ///< as Megatron-LM splits matrices
  /// What lies between products is split over the tensor-parallel ranks: all-gathers before and
  /// reduce-scatters behind the products. False: all-reduces, and each rank does all of it.
  bool sequence_parallel = true;
  std::uint64_t context_parallel = 1;  ///< ranks that share each sequence: ring attention
  std::uint64_t data_parallel = 1;     ///< replicas
  std::uint64_t expert_parallel = 1;  ///< of replicas x context ranks: those that share the experts
  bool collectives = true;            ///< false: kernels alone
  bool reduce_gradients = true;       ///< false: left to the caller, who reduces them in buckets
  /// Gradients are added to those of earlier microbatches, and cleared before the first one.
  bool accumulate_gradients = false;
  bool fp32_gradients = false;  ///< of weights, whatever the dtype: as Megatron-LM sums them
  bool optimizer = true;        ///< norm of the gradients and AdamW
  bool flash_attention = true;  ///< false: scores in memory, as Megatron did before
  bool dropout = true;          ///< of eager kernels, of GPT models
  Recomputation recomputation = Recomputation::none;
};

/// The step that llm.c runs of a published GPT: sequences of 1024 tokens, 40 of them, without
/// optimizer. @throws UsageError with the nearest name
[[nodiscard]] TrainingStep gpt_preset(std::string_view name);

[[nodiscard]] std::vector<std::string> gpt_preset_names();

/// Whether llm.c has kernels for all parts of the model; sizes do not matter.
[[nodiscard]] bool is_gpt(const ModelShape& model);

/// What a step's tensors are stored in, and what the matrices of its layers, and all other
/// products, compute in.
[[nodiscard]] Dtype stored_dtype(const TrainingStep& step);
[[nodiscard]] Dtype layer_product_dtype(const TrainingStep& step);
[[nodiscard]] Dtype product_dtype(const TrainingStep& step);

/// Checks that a step can be run.
/// @throws UsageError if a number is out of range, a degree does not divide what it splits, there
///         are no experts to share, or the work is more than can be counted
void check(const TrainingStep& step);

/// Tokens that a rank has: of a sequence, and of its whole batch.
[[nodiscard]] std::uint64_t own_seq(const TrainingStep& step);
[[nodiscard]] double tokens(const TrainingStep& step);

/// Pairs of query and key, of one head and all sequences, that the queries of a rank need: with
/// causal attention half of the square.
[[nodiscard]] double needed_pairs(const TrainingStep& step);
/// Pairs of a rank's own queries and own keys that attention multiplies, of one head and all
/// sequences. Flash attention multiplies the needed ones only; unfused attention multiplies all.
[[nodiscard]] double attention_pairs(const TrainingStep& step);

/// Copies of each head of keys and values in a tensor-parallel group: more than one where the group
/// has more ranks than the model has such heads.
[[nodiscard]] std::uint64_t kv_copies(const TrainingStep& step);

/// Logits of a token, of all ranks together: the vocabulary, padded to a multiple of 8 (whole
/// tiles), of llm.c to one of 128, and with tensor parallelism to a multiple of 128 on every rank,
/// as Megatron-LM does.
[[nodiscard]] std::uint64_t padded_vocabulary(const TrainingStep& step);

/// Makes the kernels of a step. FLOPs and DRAM bytes are per launch and rank, each operand moved
/// once. Kernels of equal layers are one. Segments are "embedding", "layer forward", "loss", "head
/// backward", "layer backward", "embedding backward" and "optimizer"; where gradients are added up,
/// "gradient clearing" comes first (of llm.c: where there is an optimizer). Experts are assumed to
/// get equal loads. Where ranks share a sequence, attention is that of a rank's own queries with
/// its own keys: RankWork has the rest. Of prefill and decode: "embedding", "layer forward" and
/// "head", which gives the next token of each sequence; keys and values go to the cache, and of
/// experts only those count that some token is expected to go to.
/// @throws UsageError as check
/// Source: docs/model-shapes.md
[[nodiscard]] GeneratedStep generate_training_step(const TrainingStep& step);

}  // namespace rubato
