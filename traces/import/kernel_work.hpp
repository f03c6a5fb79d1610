#pragma once
// Work of kernels that come without shapes, from their names and launch shapes. Rules and their
// errors: docs/trace-import.md, "Work from names".

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/capture.hpp"

namespace rubato {

/// What a name and a launch shape tell; a guess, often an upper bound.
struct NameWork {
  double flops = 0.0;       ///< per launch
  double dram_bytes = 0.0;  ///< per launch, each tensor once
  Dtype dtype = Dtype::unknown;

  friend bool operator==(const NameWork&, const NameWork&) = default;
};

/// Element-wise kernels, multi-tensor optimizers and flash attention of PyTorch.
/// @param vector_items  elements a thread of vectorized_elementwise_kernel handles: 4, since
///                      PyTorch 2.7 8
[[nodiscard]] std::optional<NameWork> work_from_name(std::string_view full_name,
                                                     const LaunchShape& shape, int vector_items);

/// Gives kernels of unknown work that of their name, marked guessed. A guess that would need more
/// than 10 TB/s or 5 PFLOP/s is none: no GPU has that.
void guess_kernel_work(Capture& capture);

}  // namespace rubato
