#pragma once
// Kernels of a sweep fitted on the parameters of another fit: `rubato calibrate --kernels-only`,
// and `rubato explore CAPTURE --table`.

#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep_fit.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// Writes mean absolute errors of points into the spec: "k_fold_time_mape_pct" and so on.
void add_errors(const std::string& prefix, const std::vector<ValidatedPoint>& points,
                const SweepFitOptions& fit, GpuSpec& spec);

/// The frame with the kernels of a sweep. Of the frame's errors it keeps what intervals rest on
/// (drop_reported_errors), raised to those on the sweep's own points where these are larger.
/// @param validated  whether to leave points out in turns and to report by how much they are
/// missed:
///                   of kernels with four points or more
/// @throws DataError if the sweep has no kernel
[[nodiscard]] SweepFit fit_kernels_only(const GpuSpec& frame, const Sweep& sweep,
                                        const SweepFitOptions& options, bool validated,
                                        const RunContext& context);

}  // namespace rubato
