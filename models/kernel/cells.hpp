#pragma once
// The inner loops of filling a table, compiled once for each instruction set that pays. All of
// them give the same bits: docs/decisions/0012-simd.md.

#include <cstddef>
#include <span>
#include <string_view>

#include "models/kernel/cell_formulas.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

/// The clocks of a table as columns, shape [clocks] each, with room for most_lanes numbers behind.
struct ClockColumns {
  static constexpr std::size_t most_lanes = 32;

  double* core_mhz;  ///< in effect without a power limit: set before `states` fills the others
  double* s_per_cycle;
  double* s_per_byte;
  double* log2_balance;
  double* idle_w;
  double* squared_voltage;
};

/// One kernel whose clock the power limit sets, at one memory state.
struct RegulatedLaunch {
  formulas::Launch<double> kernel;
  formulas::Memory<double> memory;
};

/// The loops for one instruction set.
struct TableCells {
  std::string_view name;  ///< "avx512", "avx2", "baseline"
  std::size_t lanes;

  /// Fills clocks [begin, end), all at one memory state; writes up to most_lanes beyond.
  void (*states)(const GpuSpec& spec, const formulas::Memory<double>& memory,
                 const ClockColumns& clocks, std::size_t begin, std::size_t end);

  /// Times and energies of a kernel at the first `cells` clocks as if there were no power limit.
  void (*row)(const formulas::Launch<double>& kernel, const ClockColumns& clocks, std::size_t cells,
              double* time_s, double* energy_j);

  /// Whether one of these cells draws more than the kernel's limit_w.
  bool (*over_limit)(const formulas::Launch<double>& kernel, std::size_t cells,
                     const double* time_s, const double* energy_j);

  /// The point that the power limit holds each launch at. @param points  as many as launches
  void (*regulate)(const GpuSpec& spec, std::span<const RegulatedLaunch> launches,
                   OperatingPoint* points);

  /// Cells of one kernel at one memory state: those over the limit get the regulated point's
  /// values.
  void (*hold)(const formulas::Launch<double>& kernel, const OperatingPoint& regulated,
               std::size_t cells, double* time_s, double* energy_j);
};

/// Those this machine can run, the slowest first.
[[nodiscard]] std::span<const TableCells> table_cells();

}  // namespace rubato
