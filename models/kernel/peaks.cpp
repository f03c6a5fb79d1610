#include "models/kernel/peaks.hpp"
#include "common/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace rubato {

namespace {

constexpr std::size_t longest_name =
    4096;  // characters looked at; names of real kernels are shorter

struct NameRule {
  std::string_view part;
  Arithmetic arithmetic;
};

using enum ArithmeticUnit;

// Parts of names of cuBLAS, cuDNN and CUTLASS. The first part found in a name decides, so types
// come before shapes of instructions. Before a shape, s is fp32 accumulation, h fp16, d fp64. Of
// the shapes 884 is Volta's tensor instruction, 1688 Turing's for fp16 and Ampere's for tf32, 16816
// Ampere's for 16 bits.
constexpr std::array name_rules{
    NameRule{"e4m3", {Dtype::fp8, tensor}},       NameRule{"e5m2", {Dtype::fp8, tensor}},
    NameRule{"fp8", {Dtype::fp8, tensor}},        NameRule{"_ffma_", {Dtype::fp32, cuda}},
    NameRule{"_simt_", {Dtype::fp32, cuda}},      NameRule{"sgemm", {Dtype::fp32, cuda}},
    NameRule{"scudnn", {Dtype::fp32, cuda}},      NameRule{"dgemm", {Dtype::fp64, either}},
    NameRule{"d884", {Dtype::fp64, tensor}},      NameRule{"f64f64", {Dtype::fp64, tensor}},
    NameRule{"tf32", {Dtype::tf32, tensor}},      NameRule{"bf16", {Dtype::bf16, tensor}},
    NameRule{"bfloat16", {Dtype::bf16, tensor}},  NameRule{"nvjet_tst", {Dtype::bf16, tensor}},
    NameRule{"nvjet_hsh", {Dtype::fp16, tensor}}, NameRule{"nvjet_qq", {Dtype::fp8, tensor}},
    NameRule{"fp16", {Dtype::fp16, tensor}},      NameRule{"f16f16", {Dtype::fp16, tensor}},
    NameRule{"hgemm", {Dtype::fp16, cuda}},       NameRule{"s884", {Dtype::fp16, tensor}},
    NameRule{"h884", {Dtype::fp16, tensor}},      NameRule{"h1688", {Dtype::fp16, tensor}},
    NameRule{"16816", {Dtype::fp16, tensor}},     NameRule{"turing", {Dtype::fp16, tensor}},
    NameRule{"s1688", {Dtype::tf32, tensor}},
};

double rate(const std::map<Dtype, double>& rates, Dtype dtype) {
  const auto found = rates.find(dtype);
  return found == rates.end() ? 0.0 : found->second;
}

double largest(const std::map<Dtype, double>& rates) {
  double most = 0.0;
  for (const auto& [dtype, value] : rates) most = std::max(most, value);
  return most;
}

}  // namespace

bool counted_in_flops(KernelClass kind) {
  return kind == KernelClass::gemm || kind == KernelClass::gemm_batched ||
         kind == KernelClass::attention;
}

Arithmetic arithmetic_of(const Kernel& kernel) {
  if (!counted_in_flops(kernel.kind)) {
    if (kernel.kind == KernelClass::other) return {kernel.dtype, either};
    return {kernel.dtype == Dtype::fp64 ? Dtype::fp64 : Dtype::fp32, cuda};
  }
  const std::string name = lower_case(std::string_view(kernel.label).substr(0, longest_name));
  for (const NameRule& rule : name_rules) {
    if (name.find(rule.part) == std::string::npos) continue;
    // An instruction for 16 bits does not say which of the two.
    const bool sixteen = rule.arithmetic.dtype == Dtype::fp16 && kernel.dtype == Dtype::bf16;
    return sixteen ? Arithmetic{Dtype::bf16, rule.arithmetic.unit} : rule.arithmetic;
  }
  return {kernel.dtype, either};
}

Arithmetic priced_arithmetic(const Kernel& kernel) {
  const Arithmetic known = arithmetic_of(kernel);
  if (known.unit != either) return known;
  if (known.dtype == Dtype::fp32) return {Dtype::fp32, cuda};
  if (known.dtype == Dtype::unknown) return {Dtype::bf16, tensor};
  return known;
}

double peak_flop_per_cycle(const GpuSpec& spec, const Kernel& kernel) {
  return peak_flop_per_cycle(spec, arithmetic_of(kernel));
}

double peak_flop_per_cycle(const GpuSpec& spec, const Arithmetic& arithmetic) {
  const auto& [tensor_rates, cuda_rates, pcie_gbs] = spec.peaks;
  const auto [dtype, unit] = arithmetic;
  double peak = 0.0;
  if (dtype == Dtype::unknown) {
    peak = std::max(largest(tensor_rates), largest(cuda_rates));
  } else {
    if (unit != cuda) peak = rate(tensor_rates, dtype);
    if (unit != tensor) peak = std::max(peak, rate(cuda_rates, dtype));
    // Frameworks may run products of fp32 operands as tf32.
    if (dtype == Dtype::fp32 && unit == either)
      peak = std::max(peak, rate(tensor_rates, Dtype::tf32));
  }
  return peak > 0.0 ? peak : spec.peak_flop_per_cycle;
}

double peak_dram_bytes_per_s(double reached_bytes_per_s) {
  constexpr double reached = 0.92;
  return reached_bytes_per_s / reached;
}

CopyPath copy_path(const Kernel& kernel) {
  const std::string label = lower_case(std::string_view(kernel.label).substr(0, longest_name));
  const auto has = [&](std::string_view part) { return label.find(part) != std::string::npos; };
  if (has("dtod") || has("device-to-device")) return CopyPath::device;
  if (has("ptop") || has("peer")) return CopyPath::peer;
  if (has("htod") || has("dtoh") || has("htoh") || has("host")) return CopyPath::host;
  return CopyPath::unknown;
}

}  // namespace rubato
