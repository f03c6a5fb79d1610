#pragma once
// What a GPU draws in the passes of a pipeline and while it waits for other stages, from a power
// log of a captured rank.

#include <optional>

#include "models/validation/power_alignment.hpp"
#include "traces/pipeline/captured_passes.hpp"

namespace rubato {

/// Board power, W. A value is missing where the readings cannot tell it from the rest, or not how
/// well they tell it.
struct PassPower {
  std::optional<double> forward_w, backward_w;              ///< mean over a pass, idle included
  std::optional<double> forward_reach_w, backward_reach_w;  ///< 90 % interval: power +- this
  std::optional<double> waiting_w, waiting_sigma_w;         ///< blocked power, its standard error
  double residual_w = 0.0;  ///< root mean square of reading less fit
};

/// Aligns the log with the moments when the rank computed. Then fits each reading as a mean over
/// what ran in its window: forward passes, backward passes, computing outside passes (fitted, but
/// not returned), and the rest, which is waiting.
/// @param stage  of `capture`
/// @throws what align() throws; DataError if there are too few readings
[[nodiscard]] PassPower pass_power(const Capture& capture, const CapturedStage& stage,
                                   const PowerLog& log);

}  // namespace rubato
