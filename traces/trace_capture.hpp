#pragma once
// A trace as if it had been captured: one stream, launch after launch. And one step of a capture.

#include <cstdint>
#include <functional>
#include <string_view>

#include "traces/capture.hpp"

namespace rubato {

/// What to do with a kernel that has no measured_time_s. Nothing can be replayed without it, but
/// the launches can be counted.
enum class MissingTimes { error, zero };

/// One step of `trace` with every launch at its measured time, without gaps. If a time is missing
/// and that is no error, all durations are 0 and Capture::left_out says so.
/// @throws DataError naming a kernel without measured_time_s, or if the segments are more than
///         20 million launches
[[nodiscard]] Capture as_capture(const Trace& trace, MissingTimes missing = MissingTimes::error);

/// The capture with the launches of one step alone, by its name or its position from 0.
/// @throws UsageError naming the steps there are
[[nodiscard]] Capture only_step(Capture capture, std::string_view step);
/// @pre position < capture.steps.size()
[[nodiscard]] Capture only_step(Capture capture, std::uint32_t position);

/// The capture with some of its calls and launches. Steps stay as they are.
[[nodiscard]] Capture part_of(const Capture& capture,
                              const std::function<bool(const CapturedCall&)>& keeps_call,
                              const std::function<bool(const CapturedLaunch&)>& keeps_launch);

}  // namespace rubato
