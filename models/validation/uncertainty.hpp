#pragma once
// How wrong a model may be: other models that fit the measurements as well, and
// errors the form of the model leaves in any cell.

#include <cstddef>
#include <vector>

#include "models/table/gpu_model.hpp"

namespace rubato {

/// Relative standard deviations.
struct RelativeErrors {
  double time = 0.0;
  double energy = 0.0;
};

/// Of one cell of a profile table, from the spec's errors on points it was not
/// fitted to; 10 and 15 % for a spec that was never fitted.
[[nodiscard]] RelativeErrors cell_errors(const GpuSpec& spec);

/// The spec moved by one draw of its ensemble; the spec itself if it has none.
[[nodiscard]] GpuSpec ensemble_member(const GpuSpec& spec, std::size_t member);

/// Of a kernel's cycles, bytes and core energy when they were not measured:
/// spread of the class's kernels (derived), or 30 % (guessed).
[[nodiscard]] double coefficient_error(const GpuSpec& spec, const Kernel& kernel,
                                       CoefficientSource source);

/// Draws of the model of a trace: the spec's ensemble in turn, and independent errors of the
/// coefficients that were derived or guessed. Anchored kernels keep their captured times; the draws
/// reach over all splits of core and DRAM time that their work leaves open, each draw with one
/// lean and one error of core energy for all kernels of a class. Deterministic.
/// @throws what GpuModel throws
[[nodiscard]] std::vector<GpuModel> draw_models(const GpuModel& model, const Trace& trace,
                                                std::size_t count);

}  // namespace rubato
