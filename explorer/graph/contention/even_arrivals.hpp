#pragma once
// Ranks that arrive together: who waits for a collective keeps it on its GPU, where it slows down
// what runs beside it.

#include <functional>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/graph/contention/gpu_lanes.hpp"
#include "explorer/graph/launch_units.hpp"

namespace rubato {

/// Replays clocks by unit. The run is kept until the next call.
using UnitReplay = std::function<const GraphRun&(const std::vector<ClockId>& clock_of_unit)>;

/// Moves time between collectives: of ranks that wait launches before it get slower, and the other
/// way round behind it, so that all arrive at each collective when the last one did, drawn out to
/// the deadline, or shortened where the replay was late. Tries some rounds of that in
/// `replay`; nothing where no collective of several ranks runs beside a main stream.
/// @param lanes          by what waits for what alone, shape [gpus]
/// @param clock_of_unit  to begin with
void try_even_arrivals(const LaunchCosts& costs, const std::vector<GpuLanes>& lanes,
                       const LaunchUnits& units, std::vector<ClockId> clock_of_unit,
                       double deadline_s, const UnitReplay& replay, const RunContext& context = {});

}  // namespace rubato
