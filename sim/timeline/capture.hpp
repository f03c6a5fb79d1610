#pragma once
// A captured run and its replays as a Chrome trace, one below the other.

#include <string>
#include <vector>

#include "sim/capture/replay.hpp"
#include "sim/timeline/chrome_events.hpp"

namespace rubato {

/// A replay to draw below the captured run.
struct CaptureTrack {
  std::string title;
  const CaptureRun* result = nullptr;
};

/// A power log to draw with the captured run, in its time.
struct PowerTrack {
  std::vector<double> at_s, power_w;  ///< shape [samples]
};

/// Writes Chrome trace JSON: one process per run, one row per stream; launches as slices with
/// device and stream in their arguments; counters power_w and core_mhz per device of
/// the replays, and the log's power. Times in us since the first start of the capture.
void write_capture_timeline(const TextSink& sink, const CaptureReplay& replay,
                            const std::vector<CaptureTrack>& tracks, const PowerTrack& power = {});

}  // namespace rubato
