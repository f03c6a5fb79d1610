#pragma once
// A sweep as a table to plan on: what was measured, not what a model makes of it. As Spaan et al.,
// arXiv 2601.08539, choose: every kernel measured at every clock.

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
  /// Sums of squares of what repeats are off the mean, over the mean.
  double time_squares = 0.0, energy_squares = 0.0;
};

/// In order of memory state, then core clock.
/// @throws DataError if a point lacks time or power, or repeats differ by more than a quarter
[[nodiscard]] std::vector<CellMean> cell_means(const SweepKernel& kernel, const GpuSpec& spec);

/// The points with time and power under the largest power cap, each the mean of its repeats.
/// Kernels without any are left out. @throws DataError if repeats differ by more than a quarter
[[nodiscard]] Sweep one_setting(const Sweep& sweep, const GpuSpec& spec);

/// Observed clocks (Sweep::applied_clocks) lie beside those that can be set, which are planned
/// with: each is moved to the nearest. Nothing: none had to be. Clocks beyond the GPU's stay, to be
/// refused. @param notes  gets a line if any was moved
[[nodiscard]] std::optional<Sweep> at_settable_clocks(const Sweep& sweep, const GpuSpec& spec,
                                                      std::vector<std::string>& notes);

/// What changes are against among these clocks: the spec's default or, where it was not measured,
/// the highest one. @param clocks  at least one
[[nodiscard]] ClockPair usual_clock(const GpuSpec& spec, std::span<const ClockPair> clocks);

/// Clocks at which some kernel was not measured: not to be chosen, or the missing cells from the
/// model, fitted to the points of the same kernel.
enum class MissingCells { leave_out, model };

/// Standard deviation of one measurement over its cell's mean, from cells measured more than once.
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
/// @throws DataError if a cell lacks time or power, repeats of a cell differ by more than a
/// quarter, a kernel of the
///         trace was not measured, or no clock is left
[[nodiscard]] MeasuredTable measured_table(const Sweep& sweep, const GpuSpec& spec,
                                           const std::optional<Trace>& trace, MissingCells missing);

}  // namespace rubato
