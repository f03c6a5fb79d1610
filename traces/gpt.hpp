#pragma once
// The kernels of a GPT training step, from the model's shapes by formula.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"
#include "traces/transformer/kernel_list.hpp"
#include "traces/transformer/memory.hpp"
#include "traces/transformer/model_shape.hpp"

namespace rubato {

/// Shape of a model, its batch and its parallel degrees.
struct GptShape {
  std::string model = "gpt3-xl";
  std::uint64_t layers = 24;
  std::uint64_t hidden = 2048;
  std::uint64_t heads = 16;     ///< divides hidden
  std::uint64_t vocab = 50257;  ///< padded to a multiple of 128 for the classifier
  std::uint64_t batch = 40;     ///< sequences per GPU and step
  std::uint64_t seq = 1024;     ///< tokens of a sequence on one rank
  Dtype dtype = Dtype::bf16;
  std::uint64_t context_parallel = 1;  ///< ranks that share each sequence
  std::uint64_t tensor_parallel = 1;   ///< Megatron's
  bool sequence_parallel = true;       ///< its ranks also split what lies between products
  std::uint64_t data_parallel = 1;     ///< replicas; gradients are all-reduced per layer
  bool collectives = true;             ///< false: kernels alone, as Spaan et al. time them
  bool optimizer = false;              ///< adds gradient clearing, gradient norm and AdamW
};

/// Shape of a published model by name ("gpt3-xl", "gpt3-6.7b", ...), other fields at
/// their defaults. Source: Brown et al., arXiv 2005.14165, table 2.1; gpt3-xl with
/// the 16 heads of 128 that Spaan et al. ran. @throws UsageError with the nearest name
[[nodiscard]] GptShape gpt_preset(std::string_view name);

[[nodiscard]] std::vector<std::string> gpt_preset_names();

/// Whether llm.c has kernels for all parts of the model; sizes do not matter.
[[nodiscard]] bool is_gpt(const ModelShape& model);

/// @throws UsageError for a model that is not a GPT, saying what makes one
[[nodiscard]] GptShape gpt_shape(const ModelShape& model);

/// The same step with llm.c's kernels, `seq` the rank's part of a sequence.
/// @throws UsageError as for a model, for recomputation (llm.c has its own) and for gradients in
///         fp32
[[nodiscard]] GptShape gpt_shape(const TrainingStep& step);

/// Number of parameters of the model: all layers, biases, the last norm and both embeddings, the
/// vocabulary padded.
[[nodiscard]] double parameter_count(const GptShape& shape);

/// Bytes that a GPU holds in llm.c's step; tensor parallelism splits all of them.
[[nodiscard]] MemoryPerRank memory_per_rank(const GptShape& shape);

/// The training step llm.c runs (bf16, separate attention kernels, GELU recomputed): 46 kernels for
/// one GPU, in the order and with the names of Spaan et al., arXiv 2601.08539. Parallel degrees
/// above 1 add collectives, and `optimizer` adds the optimizer. FLOPs and DRAM bytes are per launch
/// and GPU; bytes count what is read again because an L2 cache of 6 MiB cannot hold it.
/// @throws UsageError if a dimension is 0 or a degree does not divide what it splits
/// Source: kernel list read from karpathy/llm.c f1e2ace; tensor parallelism derived from
/// Megatron-LM (Korthikanti et al., arXiv 2205.05198), which llm.c does not have.
[[nodiscard]] GeneratedStep generate_gpt_step(const GptShape& shape);

/// Its kernels alone.
[[nodiscard]] Trace generate_gpt_trace(const GptShape& shape);

}  // namespace rubato
