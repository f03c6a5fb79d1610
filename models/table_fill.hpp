#pragma once
// Fills the table that solvers read, as fast as the machine allows. docs/models.md, section 9.

#include "models/clock_grid.hpp"
#include "models/gpu_model.hpp"
#include "models/profile_table.hpp"
#include "models/table_cells.hpp"

namespace rubato {

/// Time and energy of every kernel at every clock, shape [kernels x clocks], in parallel (oneTBB).
/// Each cell has the bits of GpuModel::evaluate, whatever the number of threads and `loops`.
/// @param loops  for which instruction set; the fastest one this machine has by default
/// @throws DataError naming the first cell that is not positive and finite
[[nodiscard]] ProfileTable fill_profile_table(const GpuModel& model, const ClockGrid& grid,
                                              const TableCells& loops = table_cells().back());

}  // namespace rubato
