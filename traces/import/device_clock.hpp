#pragma once
// A profiler records what GPUs do on their clocks, and what the host does on its own.

#include "traces/capture.hpp"

namespace rubato {

/// Moves the times of each GPU whose clock is apart from the host's, by what must hold: a launch
/// does not begin before its call, and a wait of the host does not end before what it waited for.
/// A GPU is moved by the least that lets every launch follow its call, or every wait end after its
/// launches, if nine tenths of the waits then hold. If they do not, because the clocks drift apart,
/// it is moved by the line through the greatest leads that is nearest to all, of at most 200 us a
/// second. If that does not help either, the GPU is left as it is.
/// A move by more than `clock_error_ns` is said in Capture::left_out. Launches stay in order.
void align_device_clocks(Capture& capture);

}  // namespace rubato
