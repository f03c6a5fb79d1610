#pragma once
// What lies between the passes of captured stages: transfers, and what holds a stage after a pass.

#include <span>
#include <string>
#include <vector>

#include "traces/capture.hpp"
#include "traces/pipeline/captured_ranks.hpp"

namespace rubato {

struct StageLinks {
  /// Median time of a transfer between stages, s. Where sends and receives have durations: from the
  /// last start to the first end. Else from the end of a pass to the start of the one next door, if
  /// that one was waiting. 0 where no step has one or ranks cannot be joined, which `notes` say.
  double transfer_s = 0.0;
  /// Median time, s, from the end of a pass to the start of the next one of its stage, where what
  /// that one needs had arrived before: sends that hold the sender. 0 where every pass waited.
  double hold_s = 0.0;
  std::vector<std::string> notes;
};

/// @param captures  the ranks of the pipeline, shape [pipeline.ranks]
[[nodiscard]] StageLinks find_stage_links(std::span<const Capture> captures,
                                          const CapturedPipeline& pipeline);

}  // namespace rubato
