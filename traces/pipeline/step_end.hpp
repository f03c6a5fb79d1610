#pragma once
// What a stage does after its last pass: the end of a training step.

#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Appends to every stage what ends a step. The optimizer waits for the gradients of all stages,
/// whose norm it clips by; reductions wait for their own stage only, as other replicas keep step.
[[nodiscard]] PipelineSchedule with_step_end(const PipelineSchedule& schedule, bool all_reduce,
                                             bool optimizer);

}  // namespace rubato
