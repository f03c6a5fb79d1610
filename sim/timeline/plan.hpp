#pragma once
// A simulated iteration as a Chrome trace that ui.perfetto.dev opens.

#include <string>

#include "models/table/gpu_model.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"
#include "sim/timeline/chrome_events.hpp"

namespace rubato {

/// One run to draw; several are drawn one below the other (one process each).
struct TimelineTrack {
  std::string title;  ///< e.g. "kernel, global, strict waste"
  const Plan* plan = nullptr;
  SwitchModel switching;
};

/// Writes Chrome trace JSON: slices for launches, passes and clock switches; counters
/// power_w, core_mhz and mem_mhz; a zero after the last slice. Times in us from 0.
void write_timeline(const TextSink& sink, const Trace& trace, const GpuModel& model,
                    const ClockGrid& grid, const std::vector<TimelineTrack>& tracks);

}  // namespace rubato
