#pragma once
// What a kernel can have done at most (roofline): the type it computes in, on which units, and the
// peak rate of these.

#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Where a kernel's arithmetic runs; either: nothing tells, and the faster one bounds it.
enum class ArithmeticUnit { tensor, cuda, either };

/// The type a kernel multiplies in, which its operands need not have: products of fp32 operands
/// run as tf32 on tensor cores.
struct Arithmetic {
  Dtype dtype = Dtype::unknown;
  ArithmeticUnit unit = ArithmeticUnit::either;

  friend bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

/// Of matrix products and attention: from the name where it tells ("ampere_sgemm", "_ffma_",
/// "s16816", "tf32", "e4m3" ...), else from the recorded type. Kernels of unknown class: the
/// recorded type, on either unit. All others run on CUDA cores in fp32, or in fp64 if recorded so.
[[nodiscard]] Arithmetic arithmetic_of(const Kernel& kernel);

/// What a kernel of unknown speed is taken to compute in: as arithmetic_of, but where nothing
/// tells, fp32 stays on CUDA cores, as frameworks do by default, and products of unknown type are
/// in bf16.
[[nodiscard]] Arithmetic priced_arithmetic(const Kernel& kernel);

/// FLOP per core cycle that a kernel's arithmetic cannot exceed, > 0. Where the kernel's type is
/// unknown, the highest rate of any type. Where the spec does not know the type's rate, that of
/// 16 bits on tensor cores.
[[nodiscard]] double peak_flop_per_cycle(const GpuSpec& spec, const Kernel& kernel);
[[nodiscard]] double peak_flop_per_cycle(const GpuSpec& spec, const Arithmetic& arithmetic);

/// Memory traffic that no kernel exceeds at a clock, bytes/s. Kernels reach 92 % of the data
/// sheet's bandwidth (docs/add-a-gpu.md). The spec has what they reach; the peak is that over 0.92.
[[nodiscard]] double peak_dram_bytes_per_s(double reached_bytes_per_s);

/// What a copy goes over.
enum class CopyPath { device, host, peer, unknown };

/// From the label of a memcpy: "Memcpy HtoD (Pageable -> Device)", "Memcpy Device-to-Host".
[[nodiscard]] CopyPath copy_path(const Kernel& kernel);

/// Whether FLOPs, not bytes, are what a class does: matrix products and attention.
[[nodiscard]] bool counted_in_flops(KernelClass kind);

}  // namespace rubato
