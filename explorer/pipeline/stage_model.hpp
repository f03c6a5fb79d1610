#pragma once
// Stage profiles from Rubato's own kernel model, for pipelines that nobody has measured. They hold
// the kernels of each stage's passes, with one clock per pass or one per kernel inside the pass.

#include <span>
#include <string>
#include <vector>

#include "explorer/marks.hpp"
#include "models/gpu/spec.hpp"
#include "sim/pipeline_run.hpp"
#include "traces/pipeline/profile.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// What gets one clock.
enum class PassClocks { per_pass, per_kernel };

/// @param name  "pass" or "kernel"
/// @throws UsageError with the nearest name
[[nodiscard]] PassClocks pass_clocks_from_name(std::string_view name);

struct StageModelInput {
  TrainingStep shape;  ///< batch: sequences of one microbatch; data_parallel and optimizer: off
  GpuSpec spec;
  std::string grid = {};     ///< see make_clock_grid
  std::uint32_t stages = 1;  ///< layers are dealt out as evenly as they go
  PassClocks clocks = PassClocks::per_pass;
  double blocked_power_w = 0.0;  ///< of a waiting stage; with a clock per kernel it decides options
  /// Whether the reduction of gradients over replicas (if there are several) and AdamW end a step.
  bool step_end = false;
  std::uint64_t replicas = 1;
  /// One stage with a clock per kernel: times of an iteration, as slack beyond the default clocks,
  /// whose best clocks of all kernels are options too, with so many microbatches.
  std::vector<double> slacks_frac = {};
  std::uint32_t microbatches = 1;
};

/// The most options of a pass with a clock per kernel, beside one clock for all of them and those
/// for slacks_frac; vertices of the hull between them are left out.
inline constexpr std::size_t most_kernel_plans = 64;

/// What the options of a pass mean for its kernels.
struct KernelClocks {
  std::vector<std::string> kernels;                       ///< names
  std::vector<std::vector<std::string>> clock_of_kernel;  ///< shape [options x kernels], labels
  std::vector<ClockUse> in_effect;                        ///< shape [options]
};

/// A modelled profile, and the clocks of the kernels of each of its passes (same order).
struct ModelProfile {
  PipelineProfile profile;
  std::vector<KernelClocks> clocks;
};

/// Models a profile. The first option of each pass has the default clocks.
/// - With a clock per pass, the others are the grid's other clocks, then the power limits.
/// - With a clock per kernel also vertices of the lower convex hull over all kernels of the pass,
///   and of one stage the clocks that are best for slacks_frac. Their core_mhz and
///   mem_mhz are means over time. Changes of clock inside a pass cost nothing.
///
/// The first stage has the embedding, the last one the loss. What ends a step comes after all other
/// passes, stage by stage, at one clock per pass.
/// @throws UsageError for power limits with clocks per kernel or outside the spec's range, and if
///         there are no stages or more than layers; what GpuModel throws
[[nodiscard]] ModelProfile model_profile(const StageModelInput& input);

/// The entry of ModelProfile::clocks that a pass runs. Recomputing runs the forward kernels. A pass
/// of input gradients or of weight gradients is cut out of the backward pass.
/// @param entries  how many ModelProfile::clocks has
[[nodiscard]] std::size_t clocks_entry(const PipelinePass& pass, const PipelineShape& shape,
                                       std::size_t entries);

/// The entries whose kernels a pass runs. Most have one. What ends a step has one for each chunk of
/// the stage. The reduction of tied embeddings has none.
[[nodiscard]] std::vector<std::size_t> clocks_entries(const PipelinePass& pass,
                                                      const PipelineShape& shape,
                                                      std::size_t entries);

/// What to know beside a saving of the modelled stages: whether the GPU that holds most needs more
/// memory than it has, and whether kernels were measured at other shapes.
/// @param chunks  how many of `input.stages` each GPU has
/// @throws what GpuModel and make_clock_grid throw
[[nodiscard]] std::vector<Mark> marks_of_stages(const StageModelInput& input, std::uint32_t chunks);

/// What to know beside a plan of modelled stages, by the clocks in effect: power limits that are
/// not kept, and clocks at which the spec was not fitted. Passes without kernels of the model do
/// not count.
/// @param clocks  of ModelProfile
[[nodiscard]] std::vector<Mark> marks_of_clocks(const GpuSpec& spec,
                                                std::span<const KernelClocks> clocks,
                                                const PipelineWork& work, const PipelinePlan& plan);

/// Adds the recomputation of each forward pass as a pass of its own: a modelled backward pass does
/// not include it.
void add_recompute(PipelineProfile& profile);

/// Power of an idle GPU of the spec at those clocks of the grid where it is least, W. It is taken
/// for the power of a stage that waits, at whatever clocks. What the default clocks draw beyond it
/// while they wait is left out, so that savings are not flattered.
[[nodiscard]] double model_idle_power_w(const GpuSpec& spec, const std::string& grid);

/// The kernels of one pass of one stage. For example, forward: embedding (first stage), the stage's
/// share of the layers, loss (last stage). For `all_reduce` and `optimizer`, kernels for the
/// parameters that the stage holds: the first stage the embeddings, the last one weights of its own
/// for the logits.
/// @pre optimizer: shape.optimizer
[[nodiscard]] Trace stage_trace(const TrainingStep& shape, std::uint32_t stages,
                                std::uint32_t stage, PassKind kind);

}  // namespace rubato
