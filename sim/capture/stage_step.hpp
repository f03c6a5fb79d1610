#pragma once
// All that one pipeline stage launches in a step: its passes in the order of the schedule, messages
// to its neighbours, data-parallel collectives behind the gradients they sum, the optimizer.

#include "sim/capture/parallel_step.hpp"
#include "sim/capture/step_writer.hpp"
#include "traces/parallel/rank_work.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Writes stage step.stage(), for parameters that are whole on every data-parallel rank (all but
/// Sharding::parameters). @param schedule  of input.pipeline
void write_stage(const ParallelStepInput& input, const RankWork& work,
                 const PipelineSchedule& schedule, StepWriter& step);

}  // namespace rubato
