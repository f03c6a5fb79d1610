#pragma once
// Captured ranks as one pipeline: which rank is which stage, and the schedule they ran.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/pipeline/captured_passes.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Several ranks as one pipeline.
struct CapturedPipeline {
  PipelineShape shape;  ///< without transfers
  /// Whether all ranks ran `shape` (gpipe, one_f_one_b or interleaved); else every stage is taken
  /// to hold one chunk, and shape.kind says nothing.
  bool order_known = false;
  std::vector<CapturedStage> ranks;          ///< shape [captures]
  std::vector<std::uint32_t> stage_of_rank;  ///< shape [captures]
  std::vector<std::string> notes;

  /// Virtual stage of a pass of a rank: chunk x stages + stage.
  [[nodiscard]] std::uint32_t virtual_stage(std::size_t rank, const CapturedPass& pass) const;
};

/// @throws DataError if a rank is given twice
void check_ranks_differ(std::span<const Capture> captures);

/// Finds the stage of each rank and the schedule they ran. A stage is the place in the pipeline's
/// group, where files have its ranks. Else it follows from the rank: as Megatron-LM counts, ranks
/// of one stage follow one another. What ends a step is left out, with a note, unless every stage
/// has it (of tied embeddings: the first and the last one).
/// @param captures  two or more ranks of one run, in any order
/// @throws what find_passes throws; DataError if there is one stage only, a rank is given twice, or
///         stages differ in the number of their passes
[[nodiscard]] CapturedPipeline find_pipeline(std::span<const Capture> captures);

/// For files of pass times whose ranks count different numbers of stages: the reader counts them by
/// the warm-up of plain 1F1B, and no file says which chunk of an interleaved stage a pass is of.
/// @throws DataError if the ranks ran an interleaved pipeline, which cannot be joined from such
/// files
void refuse_interleaved_pass_times(std::span<const Capture> captures);

}  // namespace rubato
