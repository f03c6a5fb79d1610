#pragma once
// What `rubato calibrate` says of a fit.

#include <string>

#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/spec.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

/// Every error that a spec carries, for programs.
[[nodiscard]] OutputTable error_table(const GpuSpec& spec);

/// For a fit of kernels alone: whose the GPU's parameters are, and the errors of that fit.
[[nodiscard]] std::string frame_note(const GpuSpec& frame);

/// Mean absolute errors, for people. Those that say most of how far to trust the fit come first.
[[nodiscard]] OutputTable mean_errors_table(const GpuSpec& spec);

/// The first row of mean_errors_table() in words; nothing where there is none.
[[nodiscard]] std::string fit_answer(const GpuSpec& spec);

[[nodiscard]] OutputTable parameter_table(const SweepFit& fit);

/// What the numbers mean, and what comes next. @param out  the spec's file
[[nodiscard]] std::string fit_notes(const SweepFit& fit, const std::string& out);

}  // namespace rubato
