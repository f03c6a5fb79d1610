#pragma once
// Fits the parameters of a GPU and of its kernels to measurements: the published
// numbers of Spaan et al. (arXiv 2601.08539) and, for the parameters that all
// kernels share, sweeps of other kernels on the same GPU model.

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// One kernel of the paper: Fig. 5 (default clocks and extremes over all clock
/// pairs) and Table 1 (clock of the global strict optimum).
struct PaperKernel {
  KernelId kernel;  ///< in the trace
  double count = 1.0;
  double auto_time_s = 0.0, min_time_s = 0.0, max_time_s = 0.0;        ///< of one launch
  double auto_energy_j = 0.0, min_energy_j = 0.0, max_energy_j = 0.0;  ///< of one launch
  ClockId best_clock;                                                  ///< of Table 1
  double best_time_change_pct = 0.0, best_energy_change_pct = 0.0;
};

/// One clock pair of Fig. 3, change against the default clocks.
struct PaperPassPoint {
  ClockId clock;
  double time_change_pct = 0.0, energy_change_pct = 0.0;
};

/// The published numbers, bound to a trace and a clock grid.
struct PaperData {
  std::vector<PaperKernel> kernels;          ///< one per kernel of the trace, in order
  std::vector<PaperPassPoint> forward_pass;  ///< all clock pairs of the grid
  std::vector<bool> in_forward_pass;         ///< shape [kernels]
  /// Change of the time of all kernels if each runs at the clocks of its own least energy.
  double least_energy_time_change_pct = 0.0;
};

/// Reads kernels.csv and pass_forward_sweep.csv of `folder`.
/// @throws IoError, DataError
[[nodiscard]] PaperData read_paper_data(const std::filesystem::path& folder, const ClockGrid& grid,
                                        const Trace& trace);

/// What to fit on.
struct CalibrationOptions {
  bool use_table1 = true;       ///< false: Table 1 is held out, as a test
  bool estimate_errors = true;  ///< errors of single kernels, from a second fit without Table 1
  /// Standard deviation by which logarithms of the starting points are moved, to see whether the
  /// fit ends in the same place.
  double moved_starts = 0.0;
  /// Fits made before. Many local minima fit alike, and rounding decides which of them a descent
  /// finds. So an earlier fit to the same numbers stays, unless a descent lowers its objective by
  /// more than `alike_frac`.
  std::vector<GpuSpec> earlier = {};
};

/// Share of the objective (sum of squares) by which fits count as alike: descents from starts 10 %
/// apart, or from numbers moved by rounding, end about as far apart.
inline constexpr double alike_frac = 0.02;

/// Fits a spec: nonlinear least squares from several starts, the best minimum counts.
/// @param frame  supplies names, clock ranges, grids and sources; its model parameters are ignored
/// @param sweep  may be empty
/// @return the frame with fitted parameters, kernels, classes and fit_errors. Deterministic.
[[nodiscard]] GpuSpec calibrate(const GpuSpec& frame, const Trace& trace, const ClockGrid& grid,
                                const PaperData& paper, const std::vector<SweepKernel>& sweep,
                                const CalibrationOptions& options, const RunContext& context = {});

/// The objective (sum of squares that a fit minimises) of a spec that was made by such a fit.
/// Parameters that specs do not hold are fitted for it. Nothing for a spec of other kernels.
[[nodiscard]] std::optional<double> misfit(const GpuSpec& fitted, const Trace& trace,
                                           const ClockGrid& grid, const PaperData& paper,
                                           const std::vector<SweepKernel>& sweep, bool use_table1);

}  // namespace rubato
