#pragma once
// What a generated step holds in the memory of a GPU, read from the provenance in its file.

#include <optional>

#include "traces/trace.hpp"

namespace rubato {

/// Bytes that a GPU holds in a step.
struct HeldMemory {
  double bytes = 0.0;
  bool optimizer = false;    ///< `bytes` counts AdamW's state, beside weights and gradients
  bool activations = false;  ///< `bytes` counts them as well
};

/// Of a step from `trace gen`; nothing for other traces. A step of llm.c's kernels counts without
/// activations: whoever times kernels one by one, as Spaan et al. do, never holds those of a step.
[[nodiscard]] std::optional<HeldMemory> held_memory(const Trace& trace);

}  // namespace rubato
