#pragma once
// One step of a parallel training as a profiler would record it: a rank of each pipeline stage,
// kernels in one stream and collectives in others beside it, at the times the model gives the GPU's
// default clocks. What captured runs are planned and replayed with then takes it too.
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
  optimizer,  ///< ZeRO 1, 2: they are reduce-scattered, and parameters gathered after the optimizer
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
  /// Stages, microbatches and their order; transfer_s counts for nothing.
  PipelineShape pipeline = {};
  /// Messages between stages beside kernels: received one pass ahead, and nothing waits until they
  /// are sent. False, as Megatron-LM's 1F1B: a stage goes on when its messages are over.
  /// Interleaved chunks always do.
  bool overlap_messages = false;
  GpuSpec spec;  ///< with the cluster the collectives run on

  /// GPUs of the run: tp x cp x dp x stages.
  [[nodiscard]] std::uint64_t gpus() const noexcept;
  /// The same of any degrees: 64 bits do not hold the product of the largest.
  [[nodiscard]] double gpus_asked() const noexcept;
};

/// Times of one step.
struct ParallelStepTimes {
  double step_s = 0.0;
  std::vector<RankTimes> stages;  ///< a rank of each

  /// Means over the stages.
  [[nodiscard]] double compute_s() const;
  [[nodiscard]] double comm_s() const;
  [[nodiscard]] double hidden_s() const;   ///< some communication, and a kernel beside it
  [[nodiscard]] double exposed_s() const;  ///< communication with no kernel beside it
  /// Neither kernels nor communication: what a rank waits for other stages, and for its host.
  [[nodiscard]] double bubble_s() const;
  [[nodiscard]] double comm_bytes() const;
};

/// A generated step, no capture of anything that ran.
struct ParallelStep {
  std::vector<Capture> stages;  ///< a rank of each, for all that do the same
  PipelineSchedule schedule;
  /// Pass of the schedule that a launch is of; nothing: of what a step does once. Shape
  /// [stages][launches].
  std::vector<std::vector<std::optional<std::uint32_t>>> pass_of_launch;
  ParallelStepTimes times;
};

/// Launches keep their own times: what runs beside them slows nothing down here.
/// @throws UsageError if a degree is 0 or does not fit the shape, the schedule or the cluster, if
///         there are more than about 5 million launches in layers, and what rank_work,
///         make_schedule and the network model throw
[[nodiscard]] ParallelStep parallel_step(const ParallelStepInput& input);

}  // namespace rubato
