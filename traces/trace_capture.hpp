#pragma once
// A kernel table as if it had been captured: one stream, launch after launch.

#include <string_view>

#include "traces/capture.hpp"

namespace rubato {

/// One step of `trace` with every launch at its measured time, without gaps.
/// @throws DataError naming a kernel without measured_time_s
[[nodiscard]] Capture as_capture(const Trace& trace);

/// The launches of one step, by its name or its position from 0.
/// @throws UsageError naming the steps there are
[[nodiscard]] Capture only_step(Capture capture, std::string_view step);

}  // namespace rubato
