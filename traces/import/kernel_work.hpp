#pragma once
// Work of kernels that come without shapes, from their names and launch shapes. Rules and their
// errors: docs/trace-import.md, "Work from names".

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/capture.hpp"

namespace rubato {

/// The work that a name and a launch shape tell; a guess, often an upper bound.
struct NameWork {
  double flops = 0.0;       ///< per launch
  double dram_bytes = 0.0;  ///< per launch, each tensor moved once
  Dtype dtype = Dtype::unknown;
  /// Lengths are whole blocks, heads of keys are taken to be as many as those of queries.
  std::optional<AttentionShape> attention = {};

  friend bool operator==(const NameWork&, const NameWork&) = default;
};

/// Knows element-wise kernels, multi-tensor optimizers and flash attention of PyTorch; nothing for
/// other names.
/// @param vector_items  elements that a thread of vectorized_elementwise_kernel handles: 4, or 8
///                      since PyTorch 2.7 (on Hopper and later)
[[nodiscard]] std::optional<NameWork> work_from_name(std::string_view full_name,
                                                     const LaunchShape& shape, int vector_items);

/// Gives kernels of unknown work the work of their name, marked `guessed`. A guess that would need
/// more than 10 TB/s of DRAM or 5 PFLOP/s in the captured time is dropped.
void guess_kernel_work(Capture& capture);

}  // namespace rubato
