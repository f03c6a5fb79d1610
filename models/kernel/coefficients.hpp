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

/// Carries measured coefficients to the work `kernel` does now: cycles and core
/// energy follow FLOPs (GEMM, attention) or DRAM bytes (all others). DRAM traffic
/// follows DRAM bytes, but what a GEMM reads more than once follows its FLOPs.
/// Cycles grow where the last wave of a GEMM is less full.
[[nodiscard]] KernelCoefficients carried_over(const CalibratedKernel& measured,
                                              const Kernel& kernel, double sm_count);

/// Coefficients from work and the fitted medians of the class. Nothing if the spec
/// has no such class or the class's work figure is missing.
[[nodiscard]] std::optional<KernelCoefficients> derived(const GpuSpec& spec, const Kernel& kernel);

/// Coefficients from peak rates, for classes without a fit. Collectives: the ring
/// algorithm's traffic over the link, with no core work to speak of. Nothing if
/// FLOPs or DRAM bytes are missing.
[[nodiscard]] std::optional<KernelCoefficients> guessed(const GpuSpec& spec, const Kernel& kernel);

/// Coefficients for a kernel of which only its captured time is known. Collectives and
/// copies over the bus: time that no clock changes; memsets: DRAM traffic; all
/// others: core and memory in balance, drawing a third of the power limit.
/// @param time_s      of a launch alone, > 0
/// @param core_mhz    core clock in effect when captured
[[nodiscard]] KernelCoefficients assumed(const GpuSpec& spec, const Kernel& kernel,
                                         const MemState& mem, double core_mhz, double time_s);

}  // namespace rubato
