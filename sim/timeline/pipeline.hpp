#pragma once
// Simulated iterations of a pipeline as a Chrome trace that ui.perfetto.dev opens.

#include <string>
#include <vector>

#include "sim/pipeline_run.hpp"
#include "sim/timeline/chrome_events.hpp"

namespace rubato {

/// One run to draw; several are drawn one below the other (one process each).
struct PipelineTrack {
  std::string title;  ///< e.g. "highest clocks"
  const PipelinePlan* plan = nullptr;
  SwitchModel switching = {};
};

/// Writes Chrome trace JSON: one row per stage with a slice per pass, and a counter with the power
/// of all stages together, waiting included. Times in us from 0.
void write_pipeline_timeline(const TextSink& sink, const PipelineWork& work,
                             const std::vector<PipelineTrack>& tracks);

}  // namespace rubato
