#include "models/kernel/coefficients.hpp"

#include <algorithm>
#include <cmath>

#include "models/kernel/model.hpp"
#include "models/kernel/peaks.hpp"
#include "models/kernel/shapes.hpp"
#include "models/network/collective_time.hpp"

namespace rubato {

namespace {

// A collective takes its time on the links whatever the clocks are. At the default clocks its
// copies are part of that time. At lower clocks the collective takes longer by as much as its
// copies do.
KernelCoefficients for_collective(const GpuSpec& spec, const Kernel& kernel) {
  constexpr double cycles_per_byte = 1e-3;  // a few SMs copy 1 KiB per cycle
  constexpr double core_nj_per_byte = 0.01;
  constexpr double least_fixed_share = 0.1;  // of links faster than the copies
  const Collective& message = *kernel.collective;
  const double traffic_bytes = message.message_bytes * bus_factor(message.kind, message.group_size);
  const double link_s = collective_time(cluster_of(spec), message, network_parameters()).time_s;
  KernelCoefficients c{.core_cycles = traffic_bytes * cycles_per_byte,
                       .dram_bytes = kernel.dram_bytes.value_or(2.0 * traffic_bytes),
                       .fixed_s = link_s,
                       .core_j = traffic_bytes * core_nj_per_byte * 1e-9,
                       .limit_scale = 1.0,
                       .overlap_scale = 1.0};
  const double with_copies_s =
      unlimited_point(clock_state(spec, spec.default_clock, false), c).time_s;
  c.fixed_s = std::max(2.0 * link_s - with_copies_s, least_fixed_share * link_s);
  return c;
}

// A copy over PCIe, by a copy engine.
KernelCoefficients for_host_copy(double bytes, double pcie_gbs) {
  constexpr double latency_s = 10e-6, cycles_per_byte = 1e-3, core_nj_per_byte = 0.01;
  return {.core_cycles = bytes * cycles_per_byte,
          .dram_bytes = bytes,
          .fixed_s = latency_s + bytes / (pcie_gbs * 1e9),
          .core_j = bytes * core_nj_per_byte * 1e-9,
          .limit_scale = 1.0,
          .overlap_scale = 1.0};
}

// DRAM traffic of a GEMM in two parts. What it must move at least (compulsory) grows with its
// operands. What it reads again because its tiles share operands grows with its FLOPs.
double carried_bytes(const CalibratedKernel& measured, const Kernel& kernel, double bytes_ratio,
                     double work_ratio) {
  const double then = measured.coefficients.dram_bytes;
  const double reread = then - measured.dram_bytes.value_or(then);
  if (!kernel.gemm || !kernel.dram_bytes || reread <= 0.0) return then * bytes_ratio;
  return *kernel.dram_bytes + reread * work_ratio;
}

bool same_speed(Dtype a, Dtype b) {
  const auto sixteen_bits = [](Dtype t) { return t == Dtype::bf16 || t == Dtype::fp16; };
  return a == b || (sixteen_bits(a) && sixteen_bits(b));
}

}  // namespace

double wave_efficiency(const GemmShape& shape, double sm_count) {
  constexpr double tile = 128.0;
  const double tiles = std::ceil(static_cast<double>(shape.m) / tile) *
                       std::ceil(static_cast<double>(shape.n) / tile) *
                       static_cast<double>(shape.batch);
  return tiles / (std::ceil(tiles / sm_count) * sm_count);
}

const CalibratedKernel* calibrated_kernel(const GpuSpec& spec, const Kernel& kernel) {
  const auto found = std::ranges::find(spec.kernels, kernel.name, &CalibratedKernel::name);
  if (found == spec.kernels.end()) return nullptr;
  if (found->dtype != Dtype::unknown && counted_in_flops(kernel.kind) &&
      !same_speed(priced_arithmetic(kernel).dtype, found->dtype))
    return nullptr;
  // Where a sweep or a trace says no class, its kernels are known by name alone.
  const bool same = found->kind == kernel.kind || found->kind == KernelClass::other ||
                    kernel.kind == KernelClass::other;
  return same ? &*found : nullptr;
}

KernelCoefficients carried_over(const CalibratedKernel& measured, const Kernel& kernel,
                                double sm_count) {
  KernelCoefficients c = measured.coefficients;
  const auto ratio = [](const std::optional<double>& now, const std::optional<double>& then) {
    return now && then && *then > 0.0 ? *now / *then : 1.0;
  };
  const double bytes_ratio = ratio(kernel.dram_bytes, measured.dram_bytes);
  const double work_ratio =
      counted_in_flops(kernel.kind) ? ratio(kernel.flops, measured.flops) : bytes_ratio;
  c.dram_bytes = carried_bytes(measured, kernel, bytes_ratio, work_ratio);
  c.core_cycles *= work_ratio;
  c.core_j *= work_ratio;
  if (kernel.gemm && measured.gemm) {
    c.core_cycles *=
        wave_efficiency(*measured.gemm, sm_count) / wave_efficiency(*kernel.gemm, sm_count);
  }
  return c;
}

double work_moved(const CalibratedKernel& measured, const Kernel& kernel) {
  constexpr double rounding = 1e-6;
  double most = 0.0;
  const auto compare = [&](double now, double then) {
    if (now <= 0.0 || then <= 0.0) return;
    const double moved = std::abs(std::log(now / then));
    if (moved > rounding) most = std::max(most, moved);
  };
  compare(kernel.flops.value_or(0.0), measured.flops.value_or(0.0));
  compare(kernel.dram_bytes.value_or(0.0), measured.dram_bytes.value_or(0.0));
  if (kernel.gemm && measured.gemm) {
    const auto side = [&](std::uint64_t GemmShape::*of) {
      compare(static_cast<double>((*kernel.gemm).*of), static_cast<double>((*measured.gemm).*of));
    };
    for (const auto of : {&GemmShape::m, &GemmShape::n, &GemmShape::k, &GemmShape::batch}) side(of);
  }
  return most;
}

std::optional<KernelCoefficients> derived(const GpuSpec& spec, const Kernel& kernel) {
  const auto found = std::ranges::find(spec.classes, kernel.kind, &ClassCoefficients::kind);
  // Classes of products are fitted to products in bf16.
  if (found == spec.classes.end() ||
      (counted_in_flops(kernel.kind) && !same_speed(priced_arithmetic(kernel).dtype, Dtype::bf16)))
    return from_shape(spec, kernel);
  const std::optional<double> work =
      counted_in_flops(kernel.kind) ? kernel.flops : kernel.dram_bytes;
  if (!work || *work <= 0.0) return std::nullopt;
  const double wave = kernel.gemm ? wave_efficiency(*kernel.gemm, spec.sm_count) : 1.0;
  return KernelCoefficients{
      .core_cycles = found->cycles_per_unit * *work / wave,
      .dram_bytes = found->dram_factor * std::max(kernel.dram_bytes.value_or(1.0), 1.0),
      .fixed_s = found->fixed_s,
      .core_j = found->core_nj_per_unit * 1e-9 * *work,
      .limit_scale = 1.0,
      .overlap_scale = found->overlap_scale};
}

std::optional<KernelCoefficients> guessed(const GpuSpec& spec, const Kernel& kernel) {
  if (kernel.collective) return for_collective(spec, kernel);
  // Bytes alone, without the ranks, do not tell how long a message takes.
  if (kernel.kind == KernelClass::communication) return std::nullopt;
  if (!kernel.flops || !kernel.dram_bytes || *kernel.dram_bytes <= 0.0) return std::nullopt;
  if (kernel.kind == KernelClass::memcpy && spec.peaks.pcie_gbs &&
      copy_path(kernel) == CopyPath::host)
    return for_host_copy(*kernel.dram_bytes, *spec.peaks.pcie_gbs);
  // A large GEMM reaches this share of the peak, and its core energy takes this
  // share of the power limit at the highest clock (RTX 3080 Ti: 0.98 and 0.6).
  constexpr double share_of_peak = 0.8, share_of_limit = 0.6;
  constexpr double core_nj_per_byte = 0.07, launch_s = 2e-6;
  const MemState& mem = spec.mem_states[index(spec.default_clock.mem)];
  const double highest_mhz = effective_core_mhz(spec, {spec.default_clock.mem, {}});
  const double volts = relative_voltage(spec, mem, highest_mhz);
  const double peak = peak_flop_per_cycle(spec, priced_arithmetic(kernel));
  const double core_nj_per_flop = share_of_limit * spec.power_limit.limit_w * 1e9 /
                                  (share_of_peak * peak * highest_mhz * 1e6 * volts * volts);
  return KernelCoefficients{
      .core_cycles = std::max(*kernel.flops / (share_of_peak * peak), 1.0),
      .dram_bytes = *kernel.dram_bytes,
      .fixed_s = launch_s,
      .core_j = (core_nj_per_flop * *kernel.flops + core_nj_per_byte * *kernel.dram_bytes) * 1e-9,
      .limit_scale = 1.0,
      .overlap_scale = 1.0};
}

}  // namespace rubato
