#pragma once
// Coefficients for a kernel: carried over from a calibrated one, or derived
// from its work and class.

#include <optional>

#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Wave quantisation: the share of the SMs a GEMM keeps busy, in (0, 1]. Its output tiles run in
/// waves of one tile per SM, and the last wave is not full. Tiles of 128 x 128 are assumed, the
/// usual choice of cuBLAS for large bf16 GEMMs.
[[nodiscard]] double wave_efficiency(const GemmShape& shape, double sm_count);

/// The spec's kernel of that name, class and type, where the spec tells class and type; null if it
/// has none.
[[nodiscard]] const CalibratedKernel* calibrated_kernel(const GpuSpec& spec, const Kernel& kernel);

/// Carries measured coefficients over to the work of `kernel`, the same kernel at another shape.
/// Cycles and core energy follow FLOPs (GEMM, attention) or DRAM bytes (all others). DRAM traffic
/// follows DRAM bytes, but what a GEMM reads more than once follows its FLOPs. Cycles grow where
/// the last wave of a GEMM is less full.
[[nodiscard]] KernelCoefficients carried_over(const CalibratedKernel& measured,
                                              const Kernel& kernel, double sm_count);

/// How far the work of `kernel` is from what was measured: the largest |ln ratio| of FLOPs, of DRAM
/// bytes and of each size of the matrix product (m, n, k, batch). Twice the work is ln 2, 0.69. 0:
/// the same shapes, or none are known.
[[nodiscard]] double work_moved(const CalibratedKernel& measured, const Kernel& kernel);

/// Coefficients from work and the fitted medians of the class, which products have in 16 bits; else
/// from the kernel's shape (shapes.hpp). Nothing if the spec has neither, or a work figure that
/// they need is missing.
[[nodiscard]] std::optional<KernelCoefficients> derived(const GpuSpec& spec, const Kernel& kernel);

/// Coefficients for classes without a fit, from peak rates of the kernel's type. A collective takes
/// its time from the network model on the spec's cluster, a copy from or to the host from PCIe;
/// both have hardly any core work. Nothing if the kernel has no FLOPs or DRAM bytes (a collective
/// needs neither), or communicates and its ranks are not known.
[[nodiscard]] std::optional<KernelCoefficients> guessed(const GpuSpec& spec, const Kernel& kernel);

}  // namespace rubato
