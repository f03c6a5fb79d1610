#pragma once
// Options of commands that make steps of parallel training: the model's shape, its degrees, and
// what runs beside what.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/capture/parallel_step.hpp"
#include "traces/transformer/model_shape.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

class CommandLine;

/// A model, shipped or of a file, what replaces parts of its shape, and its kernels.
struct ModelShapeOptions {
  std::string model = "gpt3-xl";
  std::optional<std::uint64_t> layers, hidden, heads, vocab, batch, seq, experts, top_k;
  std::string dtype = "bf16";
  std::string kernels, attention, recompute, matmul_precision;  ///< empty: not given
  std::string phase = "training";
  bool optimizer = false, without_optimizer = false, fp32_gradients = false;
  bool without_dropout = false;
};

/// Adds MODEL or --model, what replaces parts of its shape, --batch, --seq, --dtype, --kernels,
/// --matmul-precision, --attention, --recompute, --no-dropout, --optimizer and --no-optimizer.
void add_model_shape_options(CommandLine& app, ModelShapeOptions& options);

/// One microbatch of the model on one GPU, degrees still 1.
/// @param model  as it was loaded
/// @throws UsageError for names that are not known, listing near ones, for options that are not for
///         this model or its kernels, and for sequences longer than a published model's context
[[nodiscard]] TrainingStep shape_of(const ModelShapeOptions& options, const ModelShape& model);

/// How a step is distributed over GPUs, but for its degrees of tensor, data and pipeline
/// parallelism.
struct ParallelOptions {
  std::string gpu = "a100-sxm4-80gb", cluster, zero = "0", schedule = "1f1b", buckets = "ddp";
  std::uint32_t microbatches = 1, chunks = 1, tensor_chunks = 1;
  std::uint32_t context = 1, expert = 1;
  bool without_sequence = false, overlap_messages = false;
};

/// Adds an option for each of them, under a heading. `options` must outlive parsing.
void add_parallel_options(CommandLine& app, ParallelOptions& options);

/// The first of these options that was given and means nothing without graphs.
[[nodiscard]] std::optional<std::string> given_parallel_option(const CommandLine& app);

/// @param shape  with its degrees @param stages  of the pipeline
/// @throws UsageError for names that are not known, and what loading specs throws
[[nodiscard]] ParallelStepInput parallel_input(const ParallelOptions& options,
                                               const TrainingStep& shape, std::uint32_t stages);

}  // namespace rubato
