#pragma once
// The passes of one pipeline-parallel training iteration: which stage runs
// which pass of which microbatch in which order, and what waits for what.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"

namespace rubato {

using PassId = Id<struct PipelinePassTag>;  ///< into PipelineSchedule::passes

/// What a pass computes. A backward pass is the gradient of inputs and weights together; schedules
/// that split it use the two gradients instead. The last three kinds end a step. In them a stage
/// adds its gradients up over the replicas, the first and the last stage add up those of embeddings
/// that they share (tied weights), and a stage updates its weights.
enum class PassKind {
  forward,
  backward,
  recompute,
  input_gradient,
  weight_gradient,
  all_reduce,
  embedding_all_reduce,
  optimizer
};

/// Whether a stage runs such a pass once in a step, whatever its chunks and microbatches.
[[nodiscard]] constexpr bool ends_step(PassKind kind) noexcept {
  return kind == PassKind::all_reduce || kind == PassKind::embedding_all_reduce ||
         kind == PassKind::optimizer;
}

/// Order of passes in a stage.
enum class ScheduleKind { gpipe, one_f_one_b, interleaved, early_recompute, zb_h1 };

/// One pass of one microbatch. A stage may hold several model chunks: chunk c of stage s is virtual
/// stage c * stages + s.
struct PipelinePass {
  std::uint32_t stage = 0;
  std::uint32_t chunk = 0;
  std::uint32_t microbatch = 0;
  PassKind kind = PassKind::forward;

  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

/// `to` starts no earlier than `lag_s` after `from` has ended.
struct Dependency {
  PassId from;
  PassId to;
  double lag_s = 0.0;  ///< >= 0; time of the transfer between two stages

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// What a schedule is made from.
struct PipelineShape {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::uint32_t stages = 1;
  std::uint32_t microbatches = 1;
  std::uint32_t chunks = 1;  ///< model chunks per stage; above 1 only when interleaved
  double transfer_s = 0.0;   ///< time between the end of a pass and its start next door, >= 0
  /// Time after a pass in which its stage can begin no other, >= 0: sends that hold the sender.
  double hold_s = 0.0;

  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

/// The passes of one iteration and a directed acyclic graph on them. `passes` lists stage after
/// stage, each in the order the stage runs them; `dependencies` hold that order too.
struct PipelineSchedule {
  PipelineShape shape;
  std::vector<PipelinePass> passes;
  std::vector<Dependency> dependencies;

  /// Passes of each stage in running order, shape [stages].
  [[nodiscard]] std::vector<std::vector<PassId>> rows() const;
};

/// Largest accepted number of passes, a guard against mistyped sizes.
inline constexpr std::size_t max_pipeline_passes = 4'000'000;

/// Builds the passes and dependencies of a schedule.
/// - gpipe: all forward, then all backward in reverse (Huang et al., arXiv 1811.06965).
/// - one_f_one_b: PipeDream-flush (Narayanan et al., arXiv 2006.09503).
/// - interleaved: Megatron-LM's order (Narayanan et al., arXiv 2104.04473). With several chunks,
///   microbatches must be a multiple of stages.
/// - early_recompute: 1F1B with activations recomputed as a pass of its own, before the gradient
///   arrives.
/// - zb_h1: backward split into input and weight gradients. The latter fill bubbles, in which a
///   stage would wait (Qi et al., arXiv 2401.10241).
/// @throws UsageError if a size is 0, too large or does not fit the schedule
[[nodiscard]] PipelineSchedule make_schedule(const PipelineShape& shape);

/// Reads a graph made elsewhere: `op,stage,kind,mb[,pos]` and `src,dst[,lag_s]`. Ops are numbered
/// from 0 without gaps. Those of one stage run in the order of `pos`, or of their numbers where
/// there is no such column, whether the edges say so or not.
/// @throws IoError, DataError, and what `check` throws
[[nodiscard]] PipelineSchedule read_schedule(const std::filesystem::path& ops_csv,
                                             const std::filesystem::path& edges_csv);

/// Checks that there is a pass, that dependencies name passes and form no cycle, that every lag is
/// finite and >= 0, and that the graph is connected.
/// @param where  prefix of messages
/// @throws DataError naming the passes of a cycle or the pass that is cut off
void check(const PipelineSchedule& schedule, std::string_view where);

/// Passes in topological order: every dependency points forward; ties by index.
/// Shorter than `passes` if there is a cycle.
[[nodiscard]] std::vector<PassId> topological_order(const PipelineSchedule& schedule);

/// "forward of microbatch 3, stage 2", and the chunk where it is not the first.
[[nodiscard]] std::string describe(const PipelinePass& pass);

[[nodiscard]] std::string_view name_of(PassKind value) noexcept;
[[nodiscard]] std::string_view name_of(ScheduleKind value) noexcept;

/// @throws UsageError with the nearest name
[[nodiscard]] ScheduleKind schedule_from_name(std::string_view name);

/// Names in the order of the enumerators.
[[nodiscard]] const std::vector<std::string>& pass_kind_names();
[[nodiscard]] const std::vector<std::string>& schedule_names();

}  // namespace rubato
