#pragma once
// Plans in which ranks arrive together. A rank that waits keeps its collective on its GPU, where it
// draws power and slows down what runs beside it.

#include <functional>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// Replays clocks by unit. The run is kept until the next call.
using UnitReplay = std::function<const GraphRun&(const std::vector<ClockId>& clock_of_unit)>;

/// Moves time across collectives. Launches of a rank that waits get slower clocks before the
/// collective and faster ones behind it. The aim is that all ranks arrive at each collective when
/// the last one did, and that the run ends at the deadline: all times are drawn out to it, or
/// shortened where a replay was late. That changes what runs beside what, so it is repeated, each
/// round calling `replay`. Nothing is done where no two GPUs have collectives beside a main stream.
/// @param lanes          what may run beside what, shape [gpus]
/// @param clock_of_unit  to begin with
void try_even_arrivals(const LaunchCosts& costs, const std::vector<GpuLanes>& lanes,
                       const LaunchUnits& units, std::vector<ClockId> clock_of_unit,
                       double deadline_s, const UnitReplay& replay, const RunContext& context = {});

}  // namespace rubato
