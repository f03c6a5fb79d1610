#pragma once
// What an iteration takes under a plan where changes of clock are free and no cell was measured. It
// is added up launch by launch without a replay, and equals what simulate() gives, to the last bit.

#include <vector>

#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "models/table/profile_table.hpp"
#include "sim/plan.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Sums over an iteration.
/// @param model  without measured cells
/// @param plan   its clocks are of `grid`
[[nodiscard]] Cost free_cost(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                             const Plan& plan);

/// The same of each kernel, shape [kernels].
[[nodiscard]] std::vector<Cost> free_costs(const Trace& trace, const GpuModel& model,
                                           const ClockGrid& grid, const Plan& plan);

}  // namespace rubato
