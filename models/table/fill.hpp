#pragma once
// Fills the table that solvers read, as fast as the machine allows. docs/models.md, section 9.

#include <span>

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/cells.hpp"
#include "models/table/gpu_model.hpp"
#include "models/table/profile_table.hpp"

namespace rubato {

/// Time and energy of every kernel at every clock, shape [kernels x clocks], in parallel (oneTBB).
/// Each cell has the bits that the formulas give in GpuModel::evaluate, whatever the number of
/// threads and `loops`. Measured cells of the model are not looked at.
/// @param loops  the instruction set; by default the fastest one this machine has
/// @throws DataError naming the first cell that is not positive and finite
[[nodiscard]] ProfileTable fill_profile_table(const GpuModel& model, const ClockGrid& grid,
                                              const TableCells& loops = table_cells().back());

/// As fill_profile_table, into arrays of the caller, shape [kernels x clocks] each: for those who
/// fill many tables of one shape. To get memory from the system takes longer than to fill it.
/// @throws DataError as above, or if an array has another size
void fill_costs(const GpuModel& model, const ClockGrid& grid, std::span<double> time_s,
                std::span<double> energy_j, const TableCells& loops = table_cells().back());

/// Kernels that need not belong to a trace, on one GPU.
struct BoundKernels {
  const GpuSpec& spec;
  std::span<const KernelCoefficients> kernels;
  double power_limit_w;
};

/// Settings of the clocks. Applied ones, those observed in effect, are not lowered by the boost
/// ceiling (applied_core_mhz).
struct ClockSettings {
  std::span<const ClockPair> pairs;
  bool applied = false;
};

/// Fills cells as fill_costs does, but throws nothing: for fits, which may try any coefficients.
/// Arrays of shape [kernels x clocks].
/// @return whether all cells are known to be positive and finite. If false, they may still be
[[nodiscard]] bool fill_cells(const BoundKernels& bound, const ClockSettings& clocks,
                              double* time_s, double* energy_j,
                              const TableCells& loops = table_cells().back());

}  // namespace rubato
