#pragma once
// Campaigns of captured runs: plans as `explore` makes them of steps whose kernels were captured at
// the highest clock, and what these plans were measured to do.

#include <cstddef>
#include <vector>

#include "explorer/confidence/campaigns.hpp"

namespace rubato {

/// @param spec   fitted without the kernels of the sweep, or to some of their points
/// @param sweep  kernels that were left out, as Campaign::own
/// @return plans, drawn as wide as they are answered: nothing remains to be scaled
[[nodiscard]] std::vector<Prediction> play_captured(const GpuSpec& spec, const Sweep& sweep,
                                                    std::size_t seed);

}  // namespace rubato
