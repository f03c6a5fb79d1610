#pragma once
// A kernel table as if it had been captured: one stream, launch after launch.

#include "traces/capture.hpp"

namespace rubato {

/// One step of `trace` with every launch at its measured time, without gaps.
/// @throws DataError naming a kernel without measured_time_s
[[nodiscard]] Capture as_capture(const Trace& trace);

}  // namespace rubato
