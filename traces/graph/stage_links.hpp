#pragma once
// What lies between the passes of captured stages: transfers, and what holds a stage after a pass.

#include <span>
#include <string>
#include <vector>

#include "traces/capture.hpp"
#include "traces/pipeline/captured_ranks.hpp"

namespace rubato {

struct StageLinks {
  /// s, from the end of a pass to the start of one next door that was waiting for it, median; 0
  /// where no step has one or ranks cannot be joined, which `notes` say.
  double transfer_s = 0.0;
  /// s, from the end of a pass to the start of the next one of its stage where what that one needs
  /// had arrived before, median; 0 where every pass waited. Sends that hold the sender.
  double hold_s = 0.0;
  std::vector<std::string> notes;
};

/// @param captures  the ranks of the pipeline, shape [pipeline.ranks]
[[nodiscard]] StageLinks find_stage_links(std::span<const Capture> captures,
                                          const CapturedPipeline& pipeline);

}  // namespace rubato
