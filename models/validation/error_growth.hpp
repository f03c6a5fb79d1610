#pragma once
// How errors grow beyond the core clocks that a GPU was fitted at. docs/models.md, section 6.

#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/spec.hpp"
#include "models/validation/model_errors.hpp"

namespace rubato {

/// An error that was measured beyond the fitted clocks.
struct FarError {
  double beyond = 0.0;  ///< logarithm of the fitted clock over this one, or the inverse; > 0
  double error = 0.0;   ///< logarithm of measured over predicted
};

/// Least growth with which nine in ten errors stay below `inside_90` x (1 + growth x beyond).
/// @param errors     at least one
/// @param inside_90  what nine in ten errors at fitted clocks are below, > 0
/// @return >= 0; twice the errors 10 % beyond are a growth of 10
[[nodiscard]] double growth_of(const std::vector<FarError>& errors, double inside_90);

/// Fits the GPU without the lowest fifth of its points, and without the highest, and writes into a
/// spec by how much the errors there outgrow those of fitted clocks, and how far that was tested.
/// Writes nothing of an end whose kernels have no other clocks, and of quantities whose errors at
/// fitted clocks the spec did not learn.
/// @param errors  of cells at fitted clocks, as model_errors(spec) has them
void learn_error_growth(const GpuSpec& frame, const Sweep& sweep, const ModelErrors& errors,
                        const SweepFitOptions& fit, GpuSpec& spec, const RunContext& context = {});

/// How many times as wide errors of a core clock are as those of fitted ones, >= 1 for both: as
/// learn_error_growth found, but farther out than was tested at least as wide as is typical. 1
/// where the spec does not say which clocks were fitted, or never learned its errors: those of a
/// GPU that was never fitted are of all clocks.
[[nodiscard]] RelativeErrors growth_at(const GpuSpec& spec, double core_mhz);

}  // namespace rubato
