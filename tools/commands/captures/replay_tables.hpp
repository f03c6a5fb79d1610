#pragma once
// What `rubato replay` prints, as tables.

#include <vector>

#include "explorer/results/measurements.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

/// What there is to show beside captured and predicted times.
struct Shown {
  bool replayed = false;  ///< the run at other clocks
  bool power = false;     ///< a power log
};

/// Captured, reproduced, predicted and replayed run.
[[nodiscard]] OutputTable runs_table(const ReplayRequest& request,
                                     const ReplayComparison& comparison);

/// Of classes or kernels. @param what  names the first column
[[nodiscard]] OutputTable rows_table(const std::vector<ReplayRow>& rows, const char* what,
                                     const Shown& shown);

[[nodiscard]] OutputTable steps_table(const std::vector<ReplayStep>& steps, const Shown& shown);

/// What the time of kernels is known from.
[[nodiscard]] OutputTable coverage_table(const ReplayCoverage& coverage);

/// How a power log was put beside the capture.
[[nodiscard]] OutputTable alignment_table(const PowerEvidence& power);

}  // namespace rubato
