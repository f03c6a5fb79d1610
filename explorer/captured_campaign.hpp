#pragma once
// Tests of plans of captured runs on measurements. Steps are made of measured kernels, as if
// captured at the highest clock. Plans are made for them as `explore` does. What these plans would
// have taken is known, since the kernels were measured at every clock.

#include <cstddef>
#include <vector>

#include "explorer/confidence/campaigns.hpp"

namespace rubato {

/// @param spec   fitted without the kernels of the sweep, or to some of their points
/// @param sweep  kernels that were left out, as Campaign::own
/// @param captures  of each step, one or two
/// @return plans with their 90 % intervals as GraphPlanIntervals gives them, already scaled
[[nodiscard]] std::vector<Prediction> play_captured(const GpuSpec& spec, const Sweep& sweep,
                                                    std::size_t seed, int captures = 1);

}  // namespace rubato
