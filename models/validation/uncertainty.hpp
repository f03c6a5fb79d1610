#pragma once
// How wrong a model may be: draws of other models that fit the measurements as well.

#include <cstddef>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "models/kernel/anchor.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

/// Name of the GPU function that was launched, as published or captured, whatever its grid.
[[nodiscard]] const std::string& function_of(const Kernel& kernel) noexcept;

/// Where functions that nobody measured stand among others in each draw: even in (0, 1), a quarter
/// of it (of the variance) for all functions together. Deterministic for each order of names.
class FunctionQuantiles {
 public:
  explicit FunctionQuantiles(std::size_t draws);

  /// Shape [draws].
  [[nodiscard]] const std::vector<double>& of(const std::string& name);

 private:
  // On steps of 4 to 30 kernels, mixed from sweeps of other GPUs than those of the priors,
  // intervals of time then hold 92 to 94 %.
  static constexpr double in_common = 0.25;

  std::mt19937_64 random_;
  std::vector<double> shared_;  // standard Gaussians, shape [draws]
  std::map<std::string, std::vector<double>> functions_;
};

/// Relative standard error of a kernel's cycles, bytes and core energy. measured: 0; scaled: from 0
/// to that of derived, by how far its work moved; derived: the spread of the class's kernels, 5 to
/// 30 %; else 30 %.
[[nodiscard]] double coefficient_error(const GpuSpec& spec, const Kernel& kernel,
                                       CoefficientSource source);

/// Positions of kernels in the order of their names: draws are made in it, so that the order in
/// which kernels stand in a file moves none.
[[nodiscard]] std::vector<std::size_t> order_by_name(std::span<const Kernel> kernels);

/// Draws of the model of a trace, deterministic:
/// - the GPU and its measured kernels take the spec's ensemble in turn. Without an ensemble they do
///   not vary, and intervals know of them by model_errors alone;
/// - coefficients that were scaled, derived or guessed get random errors (coefficient_error), half
///   of their variance common to a class;
/// - anchored kernels keep their captured times. What other clocks do to them is drawn from
/// measured
///   kernels (ShapePriors), for each function (function_of) by itself but for a quarter. Where DRAM
///   bytes were counted, only what these leave open is drawn, and one error of core energy, alike
///   for all kernels of a class.
/// @param count  of draws; one where it is 0, so that an interval has something to be around
/// @throws what GpuModel throws
[[nodiscard]] std::vector<GpuModel> draw_models(const GpuModel& model, const Trace& trace,
                                                std::size_t count);

/// Draws of captured kernels: those that were fitted to captures at several clocks are like
/// measured kernels between these clocks; those fitted to a sweep take the draws of their fit; the
/// others are drawn as anchored ones above. Deterministic.
/// @param captured  shape [kernels]
/// @return one spec's coefficients for each draw, which goes with ensemble_member(spec, draw)
[[nodiscard]] std::vector<std::vector<KernelCoefficients>> draw_captured(
    const GpuSpec& spec, std::span<const Kernel> kernels, std::span<const CapturePoint> captured,
    std::size_t count);

}  // namespace rubato
