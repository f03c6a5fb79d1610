#pragma once
// Collectives of data parallelism beside the kernels of one stage: gradients in buckets, and
// sharded parameters, of which each rank keeps a part.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/capture/parallel_step.hpp"
#include "sim/capture/step_writer.hpp"

namespace rubato {

/// Ranks that hold the same parameters.
struct DataGroup {
  std::uint64_t size = 1;
  std::uint64_t stride = 1;  ///< GPUs from one to the next
};

/// The ranks that share all parameters or, with `of_experts`, those that share the same experts,
/// which are fewer.
[[nodiscard]] DataGroup data_group(const ParallelStepInput& input, bool of_experts);

/// Launches a data-parallel collective behind all kernels so far; nothing for a group of one rank.
/// Parameters are gathered in the model's data type, gradients reduced in that of gradients.
/// @param elements  numbers in the whole message
void communicate(const ParallelStepInput& input, StepWriter& step, const std::string& name,
                 CollectiveKind kind, double elements, bool of_experts);

/// Bytes of an element of a gradient that is reduced.
[[nodiscard]] double gradient_bytes(const TrainingStep& step);

/// Gradients of one stage that wait for their bucket to fill: DDP, and ZeRO 1 and 2.
class GradientQueue {
 public:
  /// @param chunks     in the order their gradients are ready
  /// @param of_experts whether these are gradients of experts (data_group)
  GradientQueue(const ParallelStepInput& input, StepWriter& step,
                std::span<const ChunkGradients> chunks, bool of_experts);

  /// The next gradient is ready. A bucket that is then full is sent.
  void ready();
  /// Gathers parameters after the optimizer, by which each rank has updated its part.
  void gather_parameters();

 private:
  const ParallelStepInput& input_;
  StepWriter& step_;
  std::vector<GradientBucket> buckets_;
  bool of_experts_;
  std::size_t next_ = 0, tensors_ = 0;
};

/// Writes all of a step whose parameters are sharded (ZeRO 3, FSDP). They are gathered in units:
/// each layer is one, the rest (embeddings and the last norm) another. The rest stays gathered from
/// its first use on, as the root of FSDP does.
void write_sharded_step(const ParallelStepInput& input, const RankWork& work, StepWriter& step);

}  // namespace rubato
