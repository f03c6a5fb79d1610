#pragma once
// Runs of an execution graph as a Chrome trace, one below the other: as captured, replayed,
// planned.

#include <string>
#include <vector>

#include "sim/graph/simulator.hpp"
#include "sim/timeline/chrome_events.hpp"

namespace rubato {

/// A run to draw below the captured one. What it refers to outlives the call that draws it.
struct GraphTrack {
  std::string title;
  const GraphRun* run = nullptr;    ///< with phases, else there are no counters
  const ClockGrid* grid = nullptr;  ///< of the clocks in the phases
};

/// A power log to draw with the captured run, in its time.
struct PowerTrack {
  std::vector<double> at_s, power_w;  ///< shape [samples]
};

/// Writes Chrome trace JSON, event by event: one process per run, the captured one first; one row
/// per stream of each GPU and one per rank for the calls of its host. Launches are slices, a
/// collective of several ranks one from arrival to departure, which says how long it waited.
/// Counters per GPU: power_w, core_mhz and mem_mhz, 0 after the last end; the log's power in the
/// captured run. Times in us since the first start of the capture.
void write_graph_timeline(const TextSink& sink, const ExecutionGraph& graph, const GpuSpec& spec,
                          const std::vector<GraphTrack>& tracks, const PowerTrack& power = {});

}  // namespace rubato
