#pragma once
// Coefficients for a kernel: carried over from a calibrated one, or derived
// from its work and class.

#include <optional>

#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Share of the SMs a GEMM keeps busy, in (0, 1]: its output tiles run in waves
/// of one per SM, and the last wave is not full. Tiles of 128 x 128, the usual
/// choice of cuBLAS for large bf16 GEMMs.
[[nodiscard]] double wave_efficiency(const GemmShape& shape, double sm_count);

/// The spec's kernel of that name and class, or of that name where the spec does not tell its
/// class; null if it has none.
[[nodiscard]] const CalibratedKernel* calibrated_kernel(const GpuSpec& spec, const Kernel& kernel);

/// Carries measured coefficients to the work `kernel` does now: cycles and core
/// energy follow FLOPs (GEMM, attention) or DRAM bytes (all others). DRAM traffic
/// follows DRAM bytes, but what a GEMM reads more than once follows its FLOPs.
/// Cycles grow where the last wave of a GEMM is less full.
[[nodiscard]] KernelCoefficients carried_over(const CalibratedKernel& measured,
                                              const Kernel& kernel, double sm_count);

/// How far the work of `kernel` is from what was measured: the largest |ln| of a ratio of FLOPs,
/// DRAM bytes or sides of the product. 0: the same shapes, or none are known.
[[nodiscard]] double work_moved(const CalibratedKernel& measured, const Kernel& kernel);

/// Coefficients from work and the fitted medians of the class. Nothing if the spec
/// has no such class or the class's work figure is missing.
[[nodiscard]] std::optional<KernelCoefficients> derived(const GpuSpec& spec, const Kernel& kernel);

/// Coefficients from peak rates of the kernel's type, for classes without a fit. Collectives: the
/// network model on the spec's cluster; copies from and to the host: PCIe; neither with core
/// work to speak of. Nothing if FLOPs or DRAM bytes are missing.
[[nodiscard]] std::optional<KernelCoefficients> guessed(const GpuSpec& spec, const Kernel& kernel);

}  // namespace rubato
