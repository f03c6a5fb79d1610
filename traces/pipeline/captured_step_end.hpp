#pragma once
// What a captured rank does after the last pass of a step: the reduction of gradients and the
// optimizer.

#include <vector>

#include "traces/pipeline/captured_passes.hpp"

namespace rubato {

/// What ends the steps of a rank.
struct CapturedStepEnds {
  std::vector<CapturedPass> passes;  ///< by step
  double unknown_s = 0.0;  ///< mean of a step, after its last pass: collectives of which nothing
                           ///< says whether they are among ranks of one stage
};

/// Finds what ends each step kept: `all_reduce`, then `embedding_all_reduce`, then `optimizer`; any
/// may be missing. `time_s()` leaves out what waits for other stages, so `end_ns` may lie before
/// the last launch:
/// - all_reduce: collectives among ranks of one stage, as far as they run after the last pass; at
///   least 1 ns where there are any. `launches` holds those that are in no pass.
/// - embedding_all_reduce: all-reduces of the pipeline's first and last rank only, or of a group
///   whose name speaks of embeddings, as far as they run after the last pass and `all_reduce`. The
///   rank that comes first waits in it for the other.
/// - optimizer: launches of the optimizer on the main stream, from the first to the last, without
///   gaps in which a collective begins.
/// Collectives are among ranks of one stage if their group has none of the pipeline's other ranks,
/// or, where ranks are not known, its name speaks of data (parallelism).
[[nodiscard]] CapturedStepEnds find_step_ends(const Capture& capture, const CapturedStage& stage);

}  // namespace rubato
