#pragma once
// The buckets that frameworks reduce gradients in: one collective for many tensors, as soon as the
// gradients of all of them are ready.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rubato {

/// Tensors that are reduced together: [first, first + count) of a list.
struct GradientBucket {
  std::size_t first = 0;
  std::size_t count = 0;
  double elements = 0.0;  ///< of all its tensors

  friend bool operator==(const GradientBucket&, const GradientBucket&) = default;
};

/// Caps of torch.nn.parallel.DistributedDataParallel: kDefaultFirstBucketBytes and bucket_cap_mb.
struct BucketCaps {
  double first_bytes = 1024.0 * 1024.0;         ///< > 0
  double other_bytes = 25.0 * 1024.0 * 1024.0;  ///< > 0
};

/// As DDP fills them. Tensors are added in the order their gradients come until the bucket holds
/// its cap or more, so it may exceed its cap by nearly a whole tensor. The last bucket holds the
/// rest.
/// @param elements       of each tensor in the order its gradient is ready, > 0
/// @param element_bytes  of a gradient, > 0
/// Source: compute_bucket_assignment_by_size in pytorch torch/csrc/distributed/c10d/reducer.cpp
[[nodiscard]] std::vector<GradientBucket> ddp_buckets(std::span<const double> elements,
                                                      double element_bytes,
                                                      const BucketCaps& caps = {});

/// Whose buckets.
enum class Bucketing : std::uint8_t { ddp, megatron };

/// Tensors of one chunk of a stage, in the order their gradients are ready, > 0.
struct ChunkGradients {
  std::vector<double> elements;
  bool of_first = true;  ///< chunk 0 of the first stage
};

/// Megatron-LM's buckets: max(40 million, 1 million x ranks) elements or more each, the last one
/// the rest. Chunks share no bucket. Only chunk 0 of the first stage has several; any other has
/// one.
/// @param ranks  that reduce the gradients
/// Source: Megatron-LM core 0.12.1, core/distributed/distributed_data_parallel.py
[[nodiscard]] std::vector<GradientBucket> megatron_buckets(std::span<const ChunkGradients> chunks,
                                                           double ranks);

}  // namespace rubato
