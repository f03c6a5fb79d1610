#pragma once
// Options of commands that make steps of parallel training: the model's shape, its degrees, and
// what runs beside what.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/capture/parallel_step.hpp"
#include "traces/gpt.hpp"
#include "traces/transformer/model_shape.hpp"

namespace rubato {

class CommandLine;

/// A model, shipped or of a file, and what replaces parts of its shape.
struct ModelShapeOptions {
  std::string model = "gpt3-xl";
  std::optional<std::uint64_t> layers, hidden, heads, vocab, batch, seq;
  std::string dtype = "bf16";
  bool optimizer = false;
};

/// Adds MODEL or --model, --batch, --seq, --layers, --hidden, --heads, --vocab, --dtype and
/// --optimizer or
/// --no-optimizer.
void add_model_shape_options(CommandLine& app, ModelShapeOptions& options);

/// @throws UsageError for names that are not known, listing near ones
[[nodiscard]] Dtype dtype_of(const ModelShapeOptions& options);

/// The model with llm.c's layers. @throws UsageError for names that are not known and for models
/// that are not GPTs
[[nodiscard]] GptShape shape_of(const ModelShapeOptions& options, const ModelShape& model);

/// How a step is dealt out, but for its degrees of tensor, data and pipeline parallelism.
struct ParallelOptions {
  std::string gpu = "a100-sxm4-80gb", cluster, zero = "0", schedule = "1f1b";
  std::uint32_t microbatches = 1, chunks = 1, tensor_chunks = 1;
  std::uint32_t context = 1, experts = 0, expert = 1;
  std::optional<std::uint32_t> top_k;  ///< nothing: 2
  bool without_sequence = false, overlap_messages = false;
};

/// Adds them under a heading. `options` must outlive parsing.
void add_parallel_options(CommandLine& app, ParallelOptions& options);

/// The first of them that was given and means nothing without graphs; experts have other uses.
[[nodiscard]] std::optional<std::string> given_parallel_option(const CommandLine& app);

/// @param shape  with its degrees @param stages  of the pipeline
/// @throws UsageError for names that are not known, and what loading specs throws
[[nodiscard]] ParallelStepInput parallel_input(const ParallelOptions& options,
                                               const GptShape& shape, std::uint32_t stages);

}  // namespace rubato
