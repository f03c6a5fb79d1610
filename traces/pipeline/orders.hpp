#pragma once
// Order of the passes of one stage under each schedule.

#include <vector>

#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Passes of `stage` in running order.
/// @param shape  valid, see make_schedule
[[nodiscard]] std::vector<PipelinePass> stage_order(const PipelineShape& shape,
                                                    std::uint32_t stage);

}  // namespace rubato
