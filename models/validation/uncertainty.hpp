#pragma once
// How wrong a model may be: other models that fit the measurements as well, and
// errors the form of the model leaves in any cell.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "models/kernel/anchor.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

/// What was launched: as published or captured, whatever its grid.
[[nodiscard]] const std::string& function_of(const Kernel& kernel) noexcept;

/// Of a kernel's cycles, bytes and core energy when they were not measured:
/// spread of the class's kernels (derived), or 30 % (guessed).
[[nodiscard]] double coefficient_error(const GpuSpec& spec, const Kernel& kernel,
                                       CoefficientSource source);

/// Draws of the model of a trace: the spec's ensemble in turn, and errors of the coefficients that
/// were derived or guessed, half of their variance in common to a class. Anchored kernels keep
/// their captured times; the draws reach over all splits of core and DRAM time that their work
/// leaves open, each draw with one lean and one error of core energy for all kernels of a class, or
/// for each function (function_of) of which only the time is known.
/// Where a spec has no ensemble its measured kernels do not vary: what intervals then know of them
/// are its model_errors. Deterministic.
/// @param count  of draws; one where it is 0, so that an interval has something to be around
/// @throws what GpuModel throws
[[nodiscard]] std::vector<GpuModel> draw_models(const GpuModel& model, const Trace& trace,
                                                std::size_t count);

/// Draws of captured kernels: those that were fitted at several clocks take the draws of their fit;
/// the others are drawn as anchored ones above. Deterministic.
/// @param captured  shape [kernels]
/// @return one spec's coefficients for each draw, which goes with ensemble_member(spec, draw)
[[nodiscard]] std::vector<std::vector<KernelCoefficients>> draw_captured(
    const GpuSpec& spec, std::span<const Kernel> kernels, std::span<const CapturePoint> captured,
    std::size_t count);

}  // namespace rubato
