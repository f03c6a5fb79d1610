#pragma once
// One rank of a data-parallel GPT step as a profiler would record it: a compute and a communication
// stream, at the times the model gives the GPU's default clocks. What captured runs are planned and
// replayed with then takes it too. docs/network.md.

#include <cstdint>
#include <string_view>

#include "models/gpu/spec.hpp"
#include "traces/capture.hpp"
#include "traces/gpt.hpp"
#include "traces/gradient_buckets.hpp"

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
  GptShape shape;  ///< data_parallel >= 2; tensor-parallel collectives stay in the compute stream
  Sharding sharding = Sharding::none;
  BucketCaps buckets;
  GpuSpec spec;  ///< with the cluster the collectives run on
};

/// Times of one step.
struct ParallelStepTimes {
  double step_s = 0.0;
  double compute_s = 0.0;   ///< in the compute stream
  double comm_s = 0.0;      ///< in the communication stream
  double comm_bytes = 0.0;  ///< messages in it, as Collective counts them

  /// Time the step takes beyond its kernels.
  [[nodiscard]] double exposed_s() const noexcept { return step_s - compute_s; }
};

/// A generated step, no capture of anything that ran.
struct ParallelStep {
  Capture capture;
  ParallelStepTimes times;
};

/// Launches keep their own times: what runs beside them slows nothing down here.
/// @throws UsageError if data_parallel is below 2 or above 1e9, or what generate_gpt_trace and the
/// network model
///         throw
[[nodiscard]] ParallelStep parallel_step(const ParallelStepInput& input);

}  // namespace rubato
