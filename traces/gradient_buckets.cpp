#include "traces/gradient_buckets.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace rubato {

namespace {

// Multiples of hidden^2 and hidden that a kernel of a layer finishes.
struct ReadyTensor {
  std::string_view kernel;
  double squares, rows;
};

constexpr std::array layer_tensors{
    ReadyTensor{"21_bias_reduce_fcproj", 0, 1},
    ReadyTensor{"24_gemm_dw_fcproj", 4, 0},
    ReadyTensor{"25_bias_fc", 0, 4},
    ReadyTensor{"27_gemm_dw_fc", 4, 0},
    ReadyTensor{"28_layernorm_bwd_2", 0, 2},
    ReadyTensor{"30_bias_reduce_attproj", 0, 1},
    ReadyTensor{"32_gemm_dw_attproj", 1, 0},
    ReadyTensor{"40_bias_qkv", 0, 3},
    ReadyTensor{"42_gemm_dw_qkv", 3, 0},
    ReadyTensor{"43_layernorm_bwd_1", 0, 2},
    ReadyTensor{"18_layernorm_bwd_final", 0, 2},
};

}  // namespace

std::vector<GradientBucket> ddp_buckets(std::span<const double> elements, double element_bytes,
                                        const BucketCaps& caps) {
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    ++open.count;
    open.elements += elements[i];
    const double cap_bytes = buckets.empty() ? caps.first_bytes : caps.other_bytes;
    if (open.elements * element_bytes < cap_bytes) continue;
    buckets.push_back(open);
    open = {.first = i + 1};
  }
  if (open.count > 0) buckets.push_back(open);
  return buckets;
}

std::vector<GradientBucket> megatron_buckets(std::span<const ChunkGradients> chunks, double ranks) {
  constexpr double least = 40e6, of_rank = 1e6;
  const double cap = std::max(least, of_rank * ranks);
  std::vector<GradientBucket> buckets;
  std::size_t first = 0;
  for (const ChunkGradients& chunk : chunks) {
    const double own = chunk.of_first ? cap : std::numeric_limits<double>::infinity();
    for (GradientBucket bucket :
         ddp_buckets(chunk.elements, 1.0, {.first_bytes = own, .other_bytes = own})) {
      bucket.first += first;
      buckets.push_back(bucket);
    }
    first += chunk.elements.size();
  }
  return buckets;
}

double ready_gradients(const GptShape& shape, std::string_view kernel) {
  const double hidden = static_cast<double>(shape.hidden);
  const double ranks = static_cast<double>(shape.tensor_parallel);
  const auto found = std::ranges::find(layer_tensors, kernel, &ReadyTensor::kernel);
  if (found != layer_tensors.end())
    return (found->squares * hidden * hidden + found->rows * hidden) / ranks;
  const double positions = static_cast<double>(shape.seq) * hidden;
  if (kernel == "44_wpe_bwd") return positions / ranks;
  if (kernel != "45_wte_bwd") return 0.0;
  const double layers = static_cast<double>(shape.layers);
  const double in_layers = layers * (12.0 * hidden * hidden + 13.0 * hidden);
  return (parameter_count(shape) - in_layers - positions - 2.0 * hidden) / ranks;
}

}  // namespace rubato
