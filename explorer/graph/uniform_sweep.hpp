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
/// If it is interrupted, clocks are missing, but never the default one.
/// @return by clock
[[nodiscard]] std::vector<UniformRun> sweep_uniform(const GraphModel& model, const ClockGrid& grid,
                                                    const RunContext& context = {});

/// The longest time of the runs. @pre not empty
[[nodiscard]] double slowest_s(const std::vector<UniformRun>& runs);

}  // namespace rubato
