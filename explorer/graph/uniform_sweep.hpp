#pragma once
// One clock for a whole graph: every clock of a grid, simulated.

#include <vector>

#include "common/run_context.hpp"
#include "sim/graph/simulator.hpp"

namespace rubato {

/// A graph at one clock.
struct UniformRun {
  ClockId clock;
  double span_s = 0.0;
  double energy_j = 0.0;  ///< all GPUs
};

/// Replays the graph at every clock, in parallel (oneTBB); the same bits for any number of threads.
/// Interrupted, later clocks are missing, the default clock never.
/// @return by clock
[[nodiscard]] std::vector<UniformRun> sweep_uniform(const GraphModel& model, const ClockGrid& grid,
                                                    const RunContext& context = {});

/// @pre not empty
[[nodiscard]] double slowest_s(const std::vector<UniformRun>& runs);

}  // namespace rubato
