#pragma once
// Extrapolation: how errors grow beyond the core clocks that a GPU was fitted at. docs/models.md,
// section 6.

#include <vector>

#include "common/run_context.hpp"
#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/spec.hpp"
#include "models/validation/model_errors.hpp"

namespace rubato {

/// An error that was measured beyond the fitted clocks.
struct FarError {
  double beyond = 0.0;  ///< |ln(clock / nearest fitted clock)|, > 0
  double error = 0.0;   ///< ln(measured / predicted)
};

/// Least growth with which nine in ten errors stay below `inside_90` x (1 + growth x beyond). For
/// example, errors that double 10 % beyond the fitted clocks have a growth of 10.
/// @param errors     at least one
/// @param inside_90  90th percentile of |error| at fitted clocks, > 0
/// @return >= 0
[[nodiscard]] double growth_of(const std::vector<FarError>& errors, double inside_90);

/// Fits the GPU without the fifth of its points at the lowest clocks, then without that at the
/// highest. Writes into the spec by how much errors at the points left out outgrow those at fitted
/// clocks, and how far out that was tested. Nothing is written of an end whose kernels have no
/// other clocks, nor of a quantity whose errors at fitted clocks the spec did not learn.
/// @param errors  of cells at fitted clocks, as model_errors(spec) has them
void learn_error_growth(const GpuSpec& frame, const Sweep& sweep, const ModelErrors& errors,
                        const SweepFitOptions& fit, GpuSpec& spec, const RunContext& context = {});

/// How many times as wide errors at a core clock are as at fitted clocks, >= 1 for time and energy.
/// As learn_error_growth found; farther out than was tested, at least as is typical of GPUs. 1
/// where the spec does not say which clocks were fitted, or never learned its errors: the errors of
/// a GPU that was never fitted hold for all clocks.
[[nodiscard]] RelativeErrors growth_at(const GpuSpec& spec, double core_mhz);

}  // namespace rubato
