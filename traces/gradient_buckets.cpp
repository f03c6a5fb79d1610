#include "traces/gradient_buckets.hpp"

#include <algorithm>
#include <limits>

namespace rubato {

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

}  // namespace rubato
