#pragma once
// One step of a parallel training as a profiler would record it: one rank of each pipeline stage,
// kernels in one stream and collectives in others beside it, at the times that the model gives for
// the GPU's default clocks. Such a step can be planned and replayed as captured runs are.
// docs/parallel.md.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/gpu/spec.hpp"
#include "sim/capture/layer_writer.hpp"
#include "sim/capture/step_writer.hpp"
#include "traces/capture.hpp"
#include "traces/gradient_buckets.hpp"
#include "traces/parallel/rank_work.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// What each rank of a data-parallel group keeps only a part of (ZeRO's stages).
enum class Sharding {
  none,       ///< DDP: buckets of gradients are all-reduced as they fill
  optimizer,  ///< ZeRO 1, 2: buckets are reduce-scattered, parameters gathered after the optimizer
  parameters  ///< ZeRO 3, FSDP: a layer's parameters are gathered before it runs, forward and
              ///< backward, one layer ahead; its gradients reduce-scattered behind the backward
};

[[nodiscard]] std::string_view name_of(Sharding value) noexcept;

/// What a parallel step is made from.
struct ParallelStepInput {
  TrainingStep shape;  ///< its batch is one microbatch; whether gradients add up is set here
  Sharding sharding = Sharding::none;
  Bucketing bucketing = Bucketing::ddp;
  BucketCaps buckets = {};  ///< of DDP
  TensorOverlap tensor_overlap = {};
  /// Stages, microbatches and their order; transfer_s is not used.
  PipelineShape pipeline = {};
  /// True: messages between stages run beside kernels. They are received one pass ahead, and
  /// nothing waits until they are sent. False, as in Megatron-LM's 1F1B: a stage goes on when its
  /// messages are over. Interleaved chunks always overlap.
  bool overlap_messages = false;
  GpuSpec spec;  ///< with the cluster the collectives run on

  /// GPUs of the run: tp x cp x dp x stages.
  [[nodiscard]] std::uint64_t gpus() const noexcept;
  /// The same for degrees of any size: 64 bits do not hold the product of the largest.
  [[nodiscard]] double gpus_asked() const noexcept;
};

/// Times of one step.
struct ParallelStepTimes {
  double step_s = 0.0;
  std::vector<RankTimes> stages;  ///< one rank of each

  /// Means over the stages.
  [[nodiscard]] double compute_s() const;
  [[nodiscard]] double comm_s() const;
  [[nodiscard]] double hidden_s() const;   ///< time with communication and a kernel beside it
  [[nodiscard]] double exposed_s() const;  ///< time with communication and no kernel beside it
  /// Time with neither kernels nor communication: a rank waits for other stages, or its host.
  [[nodiscard]] double bubble_s() const;
  [[nodiscard]] double comm_bytes() const;
};

/// A generated step: it has the form of a capture, but nothing of it ran.
struct ParallelStep {
  std::vector<Capture> stages;  ///< one rank of each stage stands for all that do the same
  PipelineSchedule schedule;
  /// The pass of the schedule that each launch belongs to; nothing: it belongs to what a step does
  /// once. Shape [stages][launches].
  std::vector<std::vector<std::optional<std::uint32_t>>> pass_of_launch;
  ParallelStepTimes times;
};

/// Makes a step. Every launch takes the time it takes alone: contention is not modelled here.
/// @throws UsageError if a degree is 0 or does not fit the shape, the schedule or the cluster, if
///         there are more than about 5 million launches in layers, and what rank_work,
///         make_schedule and the network model throw
[[nodiscard]] ParallelStep parallel_step(const ParallelStepInput& input);

}  // namespace rubato
