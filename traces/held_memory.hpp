#pragma once
// What a generated step holds in the memory of a GPU, read from what its file says of itself.

#include <optional>

#include "traces/trace.hpp"

namespace rubato {

/// Bytes that a GPU holds in a step.
struct HeldMemory {
  double bytes = 0.0;
  bool optimizer = false;    ///< AdamW's state is in it, beside weights and gradients
  bool activations = false;  ///< in it as well
};

/// Of a step from `trace gen`; nothing for other traces. Of llm.c's kernels without activations:
/// who times them one by one, as the paper does, never holds those of a whole step.
[[nodiscard]] std::optional<HeldMemory> held_memory(const Trace& trace);

}  // namespace rubato
