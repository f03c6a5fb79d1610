#pragma once
// Stage profiles from Rubato's own kernel model, for pipelines nobody has measured: the kernels
// of each stage's passes, at one clock per pass or with a plan of clocks inside the pass.

#include <span>
#include <string>
#include <vector>

#include "explorer/marks.hpp"
#include "models/gpu/spec.hpp"
#include "sim/pipeline_run.hpp"
#include "traces/gpt.hpp"
#include "traces/pipeline/profile.hpp"

namespace rubato {

/// What gets one clock.
enum class PassClocks { per_pass, per_kernel };

/// @throws UsageError with the nearest name
[[nodiscard]] PassClocks pass_clocks_from_name(std::string_view name);

struct StageModelInput {
  GptShape shape;  ///< batch: sequences of one microbatch; data_parallel and optimizer: off
  GpuSpec spec;
  std::string grid = {};     ///< see make_clock_grid
  std::uint32_t stages = 1;  ///< layers are dealt out as evenly as they go
  PassClocks clocks = PassClocks::per_pass;
  double blocked_power_w = 0.0;  ///< options beyond the least energy pay while this is drawn
  /// The gradients' reduction over replicas (if there are several) and AdamW end a step.
  bool step_end = false;
  std::uint64_t replicas = 1;
  /// W, distinct, each within the spec's range and not the spec's own: each is a choice at the
  /// default clocks, besides the clocks, which then carry the spec's own limit.
  std::vector<double> power_limits_w = {};
};

/// Most options of a pass with a clock per kernel; the front between them is left out.
inline constexpr std::size_t most_kernel_plans = 64;

/// What the options of a pass mean for its kernels.
struct KernelClocks {
  std::vector<std::string> kernels;                       ///< names
  std::vector<std::vector<std::string>> clock_of_kernel;  ///< shape [options x kernels], labels
  std::vector<ClockUse> in_effect;                        ///< shape [options]
};

/// A modelled profile, and the clocks behind each of its passes (same order).
struct ModelProfile {
  PipelineProfile profile;
  std::vector<KernelClocks> clocks;
};

/// A profile with default clocks as the first option of each pass. Per pass, the others are the
/// grid's clocks. Per kernel, they are vertices of the front of all kernels of the pass, and
/// core_mhz and mem_mhz are means over time; changes of clock inside a pass cost nothing.
/// The first stage has the embedding, the last one the loss. What ends a step comes after all other
/// passes, stage by stage, at one clock per pass.
/// @throws UsageError for power limits with clocks per kernel or outside the spec's range, if there
/// are more stages than layers, and what GpuModel throws
[[nodiscard]] ModelProfile model_profile(const StageModelInput& input);

/// The entry of ModelProfile::clocks that a pass runs: recomputing runs forward kernels, both
/// gradients are cut out of the backward pass.
/// @param entries  of ModelProfile::clocks
[[nodiscard]] std::size_t clocks_entry(const PipelinePass& pass, const PipelineShape& shape,
                                       std::size_t entries);

/// The entries whose kernels a pass runs: one, of what ends a step one for each chunk of the stage;
/// none of the reduction of tied embeddings.
[[nodiscard]] std::vector<std::size_t> clocks_entries(const PipelinePass& pass,
                                                      const PipelineShape& shape,
                                                      std::size_t entries);

/// What to know beside a saving of the modelled stages: the most that one GPU holds is more than it
/// has, kernels were measured at other shapes.
/// @param chunks  of `input.stages` on each GPU
/// @throws what GpuModel and make_clock_grid throw
[[nodiscard]] std::vector<Mark> marks_of_stages(const StageModelInput& input, std::uint32_t chunks);

/// What to know beside a plan of modelled stages, by the clocks in effect: limits not reached,
/// clocks that the spec was not fitted at. What runs no kernels of the model counts for nothing.
/// @param clocks  of ModelProfile
[[nodiscard]] std::vector<Mark> marks_of_clocks(const GpuSpec& spec,
                                                std::span<const KernelClocks> clocks,
                                                const PipelineWork& work, const PipelinePlan& plan);

/// Adds recomputing the forward pass as a pass of its own: a modelled backward pass does not
/// hold it.
void add_recompute(PipelineProfile& profile);

/// Power of a GPU of the spec that does nothing, at the clocks of the grid where that is least, W:
/// a stage that waits draws no more than one that works. What the default clocks waste while they
/// wait beyond that is left out, so that savings are not flattered.
[[nodiscard]] double model_idle_power_w(const GpuSpec& spec, const std::string& grid);

/// The kernels of one pass of one stage, e.g. for `kind` forward: embedding (first stage), its
/// share of the layers, loss (last stage). For `all_reduce` and `optimizer` what the stage holds:
/// the first stage the embeddings, the last one weights of its own for the logits.
/// @pre optimizer: shape.optimizer
[[nodiscard]] Trace stage_trace(const GptShape& shape, std::uint32_t stages, std::uint32_t stage,
                                PassKind kind);

}  // namespace rubato
