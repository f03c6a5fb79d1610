#pragma once
// A sweep as a table to plan on: what was measured, not what a model makes of it. Spaan et al.,
// arXiv 2601.08539, plan this way: every kernel is measured at every clock.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/calibration/sweep.hpp"
#include "models/table/measured_cells.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// "5001/1470": memory state and core clock, or "auto".
[[nodiscard]] std::string clock_text(const GpuSpec& spec, const ClockPair& clock);

/// TraceProvenance::generator of traces made from a table.
inline constexpr const char* table_generator = "sweep";

/// One kernel at one clock: means over its repeats.
struct CellMean {
  ClockPair clock;
  double time_s = 0.0, energy_j = 0.0;
  std::size_t repeats = 0;  ///< measurements beyond the first
  /// Sums over the measurements of (value / mean - 1)^2.
  double time_squares = 0.0, energy_squares = 0.0;
};

/// Means of all cells, in order of memory state, then core clock.
/// @throws DataError if a point lacks time or power, or the highest repeat of a cell is more than
///         25 % above its lowest
[[nodiscard]] std::vector<CellMean> cell_means(const SweepKernel& kernel, const GpuSpec& spec);

/// The points with time and power under the largest power cap, each the mean of its repeats.
/// Kernels without such a point are left out.
/// @throws DataError if repeats differ by more than 25 %, as cell_means
[[nodiscard]] Sweep one_setting(const Sweep& sweep, const GpuSpec& spec);

/// The sweep with every observed core clock (Sweep::applied_clocks) moved to the nearest clock that
/// can be set, since plans can only ask for those. Clocks more than half a step from any stay, to
/// be refused later. Nothing: no clock had to move.
/// @param notes  gets a line if any was moved
[[nodiscard]] std::optional<Sweep> at_settable_clocks(const Sweep& sweep, const GpuSpec& spec,
                                                      std::vector<std::string>& notes);

/// The clock among these that changes of time and energy are against: the spec's default or, where
/// that was not measured, the highest. @param clocks  at least one
[[nodiscard]] ClockPair usual_clock(const GpuSpec& spec, std::span<const ClockPair> clocks);

/// What becomes of clocks at which some kernel was not measured. leave_out: they are not to be
/// chosen. model: the built-in model, fitted to the points of the same kernel, fills the cell.
enum class MissingCells { leave_out, model };

/// Relative standard deviation of one measurement around its cell's mean, pooled over all cells
/// that were measured more than once.
struct RepeatNoise {
  double time = 0.0, energy = 0.0;
  std::size_t repeats = 0;  ///< measurements beyond the first of their cells
};

struct MeasuredTable {
  Trace trace;
  GpuSpec spec;  ///< its default clock is one of `clocks`; knows the kernels whose cells it fills
  std::shared_ptr<const MeasuredCells> cells;
  std::vector<ClockPair> clocks;  ///< to choose from
  std::optional<RepeatNoise> noise;
  std::size_t modelled = 0;        ///< cells of `clocks` that were not measured
  std::vector<std::string> notes;  ///< what a reader must know, a line each
};

/// Cells are means over repeats. Observed clocks (Sweep::applied_clocks) count as the nearest ones
/// that can be set.
/// @param trace  says how often each kernel runs, found by name, else label. Nothing: each kernel
///               runs as often as its `count` says, once without one
/// @throws DataError if a cell lacks time or power, repeats of a cell differ by more than 25 %, a
///         kernel of the trace was not measured, or no clock is left
[[nodiscard]] MeasuredTable measured_table(const Sweep& sweep, const GpuSpec& spec,
                                           const std::optional<Trace>& trace, MissingCells missing);

}  // namespace rubato
