#pragma once
// Runs of execution graphs as a Chrome trace, one below the other: as captured, replayed, planned.
// plan.hpp and pipeline.hpp add what is special to runs of traces and pipelines.

#include <functional>
#include <string>
#include <vector>

#include "sim/graph/simulator.hpp"
#include "sim/timeline/chrome_events.hpp"

namespace rubato {

/// What a slice of a launch says.
struct SliceText {
  std::string_view category;
  std::string name;
  ChromeProcess::Json args;
};

/// A run to draw below the one before. What it refers to must outlive the call that draws it.
struct GraphTrack {
  std::string title;
  const GraphRun* run = nullptr;    ///< with phases, else there are no counters
  const ClockGrid* grid = nullptr;  ///< of the clocks in the phases; null: one counter, the power
                                    ///< of all GPUs together
  /// Text of each launch, by its activity. Empty: its kernel's name and numbers, as of a capture.
  std::function<SliceText(std::size_t)> text_of = {};
  /// Adds rows for passes and for changes of clock to that of the launches. Only for a graph with
  /// one stream whose launches have cells.
  bool passes_and_changes = false;
};

/// A power log to draw with the captured run, in the time of that run.
struct PowerTrack {
  std::vector<double> at_s, power_w;  ///< shape [samples]
};

/// Draws a run as process `pid`: one row per stream of each GPU, and one per rank for the calls of
/// its host. A launch is a slice. A collective of several ranks is a slice from arrival to
/// departure, which says how long it waited. Flows lead from each slice to those of other rows that
/// wait for it: a call to its launch, a launch to one behind an event or to the call that waits for
/// it, a send to its receive, and in a collective the rank that came last to the others. Counters
/// per GPU: power_w, core_mhz and mem_mhz, 0 after the last end. Times in us since the origin.
/// @param spec  of the grid; may be null if the track has no grid
void draw_graph_run(ChromeTrace& trace, int pid, const ExecutionGraph& graph, const GpuSpec* spec,
                    const GraphTrack& track);

/// Writes Chrome trace JSON, event by event: one process per run, the captured one first, with the
/// log's power.
void write_graph_timeline(const TextSink& sink, const ExecutionGraph& graph, const GpuSpec& spec,
                          const std::vector<GraphTrack>& tracks, const PowerTrack& power = {});

}  // namespace rubato
