#include "models/kernel/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/text.hpp"
#include "models/kernel/model.hpp"
#include "models/kernel/peaks.hpp"

namespace rubato {

namespace {

// The path of a type. Where a chip has bf16 but not fp16 or the other way round, one stands for the
// other; tf32 without tensor cores for it is fp32.
const MathPath* path_of(const Operators& operators, const Arithmetic& arithmetic) {
  const auto find = [&](Dtype dtype) -> const MathPath* {
    const auto found = operators.paths.find(dtype);
    return found == operators.paths.end() ? nullptr : &found->second;
  };
  if (arithmetic.unit == ArithmeticUnit::cuda && arithmetic.dtype != Dtype::fp64)
    return find(Dtype::fp32);
  if (const MathPath* own = find(arithmetic.dtype)) return own;
  switch (arithmetic.dtype) {
    case Dtype::bf16: return find(Dtype::fp16);
    case Dtype::fp16: return find(Dtype::bf16);
    case Dtype::tf32: return find(Dtype::fp32);
    default: return nullptr;
  }
}

// Bytes of an element as the kernel's operands hold it; products of unknown type are taken for 16
// bits.
double operand_bytes(const Kernel& kernel, const Arithmetic& arithmetic) {
  const Dtype dtype = kernel.dtype == Dtype::unknown ? arithmetic.dtype : kernel.dtype;
  return element_bytes(dtype);
}

bool has_part(const Kernel& kernel, const std::string& part) {
  return lower_case(kernel.label).find(part) != std::string::npos ||
         lower_case(kernel.name).find(part) != std::string::npos;
}

// The energies of an architecture are at the floor of its voltage curve. A spec with a curve of its
// own has the same at its default clock.
double energy_scale(const GpuSpec& spec) {
  const VoltagePrior& prior = spec.operators->voltage;
  const double mhz = effective_core_mhz(spec, spec.default_clock);
  const double expected = 1.0 + prior.slope_per_ghz * 1e-3 * std::max(mhz - prior.knee_mhz, 0.0);
  const double own = relative_voltage(spec, spec.mem_states[index(spec.default_clock.mem)], mhz);
  return expected * expected / (own * own);
}

KernelCoefficients coefficients(const GpuSpec& spec, double cycles, double bytes, double launch_s,
                                double core_pj, double overlap) {
  return {.core_cycles = std::max(cycles, 1.0),
          .dram_bytes = std::max(bytes, 1.0),
          .fixed_s = launch_s,
          .core_j = core_pj * 1e-12 * energy_scale(spec),
          .limit_scale = 1.0,
          .overlap_scale = overlap / spec.shared.overlap_exponent};
}

std::optional<KernelCoefficients> product(const GpuSpec& spec, const Kernel& kernel) {
  const Operators& operators = *spec.operators;
  const Arithmetic arithmetic = priced_arithmetic(kernel);
  const MathPath* path = path_of(operators, arithmetic);
  if (path == nullptr || (!kernel.gemm && (!kernel.flops || !kernel.dram_bytes))) return {};
  const bool tensor = path != path_of(operators, {Dtype::fp32, ArithmeticUnit::cuda});
  const ProductCosts& costs = tensor ? operators.tensor : operators.cuda;
  // vLLM's kernels of experts, written in Triton, beside library products of their shapes (H200).
  constexpr double of_fused_experts = 0.8;
  const double share = path->share * (has_part(kernel, "fused experts") ? of_fused_experts : 1.0);
  const double flop_per_cycle = share * peak_flop_per_cycle(spec, arithmetic) / spec.sm_count;
  double cycles = 0.0, flops = 0.0, bytes = 0.0;
  if (kernel.gemm) {
    const GemmShape& shape = *kernel.gemm;
    const double element = operand_bytes(kernel, arithmetic);
    cycles = product_cycles(costs, shape, flop_per_cycle, element, spec.sm_count);
    flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
            static_cast<double>(shape.k) * static_cast<double>(shape.batch);
    bytes = std::max(product_bytes(shape, element, spec.sm_count, operators.l2_mb * 1e6),
                     kernel.dram_bytes.value_or(0.0));
  } else {
    cycles = *kernel.flops / (flop_per_cycle * spec.sm_count);
    flops = *kernel.flops;
    bytes = *kernel.dram_bytes;
  }
  const double core_pj = path->core_pj_per_flop * flops + operators.core_pj_per_byte * bytes;
  return coefficients(spec, cycles, bytes * costs.dram_factor, costs.launch_s, core_pj,
                      costs.overlap);
}

struct AttentionSizes {
  double batch, heads, kv_heads, queries, keys, width;
};

AttentionSizes sizes_of(const AttentionShape& shape) {
  return {.batch = static_cast<double>(shape.batch),
          .heads = static_cast<double>(shape.heads),
          .kv_heads = static_cast<double>(shape.kv_heads),
          .queries = static_cast<double>(shape.q_tokens),
          .keys = static_cast<double>(shape.kv_tokens),
          .width = static_cast<double>(shape.head_dim)};
}

// One query, or few, against many keys: each item reads the keys of up to 64 rows of queries once.
constexpr double decode_rows = 64.0;

KernelCoefficients decode(const GpuSpec& spec, const Kernel& kernel, double element) {
  constexpr double join_s = 2.6e-6, joined_keys = 2048.0;
  const Operators& operators = *spec.operators;
  const AttentionCosts& costs = operators.attention;
  const AttentionShape& shape = *kernel.attention;
  const auto [batch, heads, kv_heads, queries, keys, width] = sizes_of(shape);
  const double items = batch * kv_heads * std::ceil(heads / kv_heads * queries / decode_rows);
  const double cycles = std::max(items / spec.sm_count, 1.0) * costs.item_cycles;
  const double bytes = 2.0 * batch * (kv_heads * keys + heads * queries) * width * element;
  const double flops = 4.0 * batch * heads * attended_pairs(shape) * width;
  return coefficients(spec, cycles, bytes * costs.dram_factor,
                      costs.launch_s + join_s * std::min(1.0, keys / joined_keys),
                      costs.core_pj_per_flop * flops + operators.core_pj_per_byte * bytes,
                      costs.overlap_decode);
}

// Many queries: tiles of 128 rows, which the heads of a group share, meet blocks of 128 keys.
KernelCoefficients prefill(const GpuSpec& spec, const Kernel& kernel, double flop_per_cycle,
                           double element) {
  constexpr double side = 128.0, backward = 2.5, balance = 6.0;
  const Operators& operators = *spec.operators;
  const AttentionCosts& costs = operators.attention;
  const AttentionShape& shape = *kernel.attention;
  const auto [batch, heads, kv_heads, queries, keys, width] = sizes_of(shape);
  const double forward_flops = 4.0 * batch * heads * attended_pairs(shape) * width;
  const double work = kernel.flops && *kernel.flops > 0.0 ? *kernel.flops / forward_flops
                      : kernel.pass == Pass::backward     ? backward
                                                          : 1.0;
  const double group = heads / kv_heads, tokens = side / group;  // tokens of a tile
  const double tiles = std::ceil(queries * group / side), all = std::ceil(keys / side);
  double blocks = all;  // that a tile meets, in the mean
  if (shape.causal) {
    const double before = std::max(keys - queries, 0.0);
    blocks = std::min(all, (before + 0.5 * (tiles + 1.0) * tokens) / side +
                               std::max(0.5 * (1.0 - tokens / side), 0.0));
  }
  const double of_all = batch * kv_heads * tiles;
  const double block_flops = 4.0 * side * side * width * work;
  const double block = block_flops / flop_per_cycle;
  const double mean = of_all * (blocks * block + costs.item_cycles) / spec.sm_count;
  const double longest = all * block + costs.item_cycles;
  const double bytes =
      std::max(kernel.dram_bytes.value_or(0.0),
               2.0 * batch * (heads * queries + kv_heads * keys) * width * element);
  const double core_pj =
      costs.core_pj_per_flop * of_all * blocks * block_flops + operators.core_pj_per_byte * bytes;
  return coefficients(spec,
                      std::pow(std::pow(mean, balance) + std::pow(longest, balance), 1.0 / balance),
                      bytes, costs.launch_s, core_pj, costs.overlap_prefill);
}

std::optional<KernelCoefficients> attention(const GpuSpec& spec, const Kernel& kernel) {
  const AttentionCosts& costs = spec.operators->attention;
  const Arithmetic arithmetic = priced_arithmetic(kernel);
  if (path_of(*spec.operators, arithmetic) == nullptr) return std::nullopt;
  double share = costs.share;
  for (const auto& [part, named] : costs.named) {
    if (has_part(kernel, part)) share = named;
  }
  if (kernel.pass == Pass::backward) share *= costs.backward;
  const double flop_per_cycle = share * peak_flop_per_cycle(spec, arithmetic) / spec.sm_count;
  if (!kernel.attention) {
    if (!kernel.flops || !kernel.dram_bytes) return std::nullopt;
    return coefficients(spec, *kernel.flops / (flop_per_cycle * spec.sm_count), *kernel.dram_bytes,
                        costs.launch_s,
                        costs.core_pj_per_flop * *kernel.flops +
                            spec.operators->core_pj_per_byte * *kernel.dram_bytes,
                        costs.overlap_prefill);
  }
  const AttentionShape& shape = *kernel.attention;
  const double rows = static_cast<double>(shape.heads) / static_cast<double>(shape.kv_heads) *
                      static_cast<double>(shape.q_tokens);
  const double element = operand_bytes(kernel, arithmetic);
  return shape.q_tokens < shape.kv_tokens && rows <= decode_rows
             ? decode(spec, kernel, element)
             : prefill(spec, kernel, flop_per_cycle, element);
}

// Bytes in effect of a stream: the L2 moves what it holds faster. From 0.7 of its size on a stream
// begins to miss, beyond its size nothing is left.
double beside_l2(const Operators& operators, double bytes) {
  constexpr double begins = 0.7;
  const double size = bytes / (operators.l2_mb * 1e6);
  const double missed = std::clamp((size - begins) / (1.0 - begins), 0.0, 1.0);
  return bytes * (missed + (1.0 - missed) / operators.l2_speedup);
}

// Of costs with a part of a name and no class the class is `other`: they are for any.
const StreamingCosts& streaming_of(const Operators& operators, const Kernel& kernel) {
  for (const StreamingCosts& costs : operators.streaming) {
    const bool kind =
        costs.kind == kernel.kind || (costs.kind == KernelClass::other && !costs.named.empty());
    if (kind && (costs.named.empty() ||
                 std::ranges::any_of(
                     costs.named, [&](const std::string& part) { return has_part(kernel, part); })))
      return costs;
  }
  return operators.streaming.back();
}

std::optional<KernelCoefficients> stream(const GpuSpec& spec, const Kernel& kernel) {
  if (!kernel.dram_bytes || *kernel.dram_bytes <= 0.0) return std::nullopt;
  const Operators& operators = *spec.operators;
  const StreamingCosts& costs = streaming_of(operators, kernel);
  const double bytes = *kernel.dram_bytes;
  const double elements =
      bytes / (kernel.dtype == Dtype::unknown ? 2.0 : element_bytes(kernel.dtype));
  const MathPath& math = operators.paths.at(Dtype::fp32);
  const double flops = kernel.flops.value_or(0.0);
  const double flop_per_cycle =
      math.share * peak_flop_per_cycle(spec, {Dtype::fp32, ArithmeticUnit::cuda}) / spec.sm_count;
  const double sm_cycles = elements / costs.elements_per_cycle_sm + flops / flop_per_cycle;
  const double core_pj = operators.core_pj_per_byte * bytes + math.core_pj_per_flop * flops +
                         operators.core_pj_per_sm_cycle * elements / costs.elements_per_cycle_sm;
  return coefficients(
      spec, sm_cycles / spec.sm_count,
      beside_l2(operators, bytes) * costs.dram_factor * operators.stream_dram_factor,
      costs.launch_s, core_pj, costs.overlap);
}

}  // namespace

double product_cycles(const ProductCosts& costs, const GemmShape& shape, double flop_per_cycle,
                      double element_bytes, double sm_count) {
  constexpr double splits[] = {1.0, 2.0, 4.0, 8.0, 16.0};
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : costs.tiles) {
    for (const double split : splits) {
      const double depth = std::ceil(k / split / costs.k_step) * costs.k_step;
      const double flop = 2.0 * tile.m * tile.n * depth / flop_per_cycle;
      const double load = depth * (tile.m + tile.n) * element_bytes / costs.operand_bytes_per_cycle;
      const double each = std::pow(std::pow(flop, 4.0) + std::pow(load, 4.0), 0.25) +
                          costs.item_cycles + costs.split_cycles * (split - 1.0);
      const double waves = std::ceil(m / tile.m) * std::ceil(n / tile.n) * batch * split / sm_count;
      const double taken =
          costs.whole_waves * std::ceil(waves) + (1.0 - costs.whole_waves) * std::max(waves, 1.0);
      least = std::min(least, taken * each);
    }
  }
  return least;
}

double product_bytes(const GemmShape& shape, double element_bytes, double sm_count,
                     double l2_bytes) {
  constexpr double largest_tile = 128.0 * 256.0, share_of_l2 = 0.5;
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  const double once = element_bytes * (m * k + k * n + m * n);
  double bytes = once;
  if (element_bytes * k * (m + n) > share_of_l2 * l2_bytes) {
    // A wave of tiles covers a nearly square part of the output.
    const double area = sm_count * largest_tile, side = std::sqrt(area);
    const double high = std::min(m, std::max(side, area / n));
    const double wide = std::min(n, area / high);
    const double again =
        element_bytes * ((high + wide) * k * std::ceil(m * n / (high * wide)) + m * n);
    bytes = std::max(once, again);
  }
  return batch * bytes;
}

std::optional<KernelCoefficients> from_shape(const GpuSpec& spec, const Kernel& kernel) {
  if (!spec.operators) return std::nullopt;
  switch (kernel.kind) {
    case KernelClass::communication: return std::nullopt;
    case KernelClass::gemm:
    case KernelClass::gemm_batched: return product(spec, kernel);
    case KernelClass::attention: return attention(spec, kernel);
    case KernelClass::memcpy:
      if (copy_path(kernel) != CopyPath::device && copy_path(kernel) != CopyPath::unknown)
        return std::nullopt;
      break;
    case KernelClass::other:
      if (kernel.attention) return attention(spec, kernel);
      if (kernel.gemm || kernel.flops.value_or(0.0) > 0.0) return product(spec, kernel);
      break;
    default: break;
  }
  return stream(spec, kernel);
}

}  // namespace rubato
