#pragma once
// A pipeline whose stages the kernel model describes, asked the questions that explore() answers
// for a single GPU. So pipelines and single GPUs stand beside each other in one experiment.

#include <cstdint>

#include "explorer/exploration.hpp"
#include "traces/pipeline/schedule.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// How a training step is spread over stages.
struct PipelineSplit {
  TrainingStep shape;  ///< batch: of the pipeline and iteration, a multiple of microbatches.
                       ///< Optimizer and data parallelism are left out
  std::uint32_t stages = 2;
  std::uint32_t microbatches = 1;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
};

/// The kernels of one microbatch on all stages.
/// @throws UsageError if a size is 0 or does not divide what it splits
[[nodiscard]] Trace microbatch_trace(const PipelineSplit& split);

/// Answers the questions with plans of the whole pipeline. A clock per kernel is one inside each
/// pass. Energies are means over the stages: of one GPU, as those of explore(). Waiting is in the
/// totals only: the baseline's sums by pass and by kernel are without it. Plans have no such sums.
/// `input.trace` is microbatch_trace(split).
/// @throws what make_schedule, model_profile and refuse_unanswerable throw
[[nodiscard]] Exploration explore_pipeline(const ExplorationInput& input,
                                           const PipelineSplit& split);

}  // namespace rubato
