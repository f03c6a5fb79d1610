#pragma once
// What a point of an experiment means to models and solvers: its values in their types and units.

#include <cstdint>
#include <optional>
#include <string>

#include "explorer/experiments/axes.hpp"
#include "explorer/exploration.hpp"
#include "explorer/pipeline/exploration.hpp"
#include "sim/switch_model.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {

/// @throws UsageError if its name is not known or it lacks its budget or prices
[[nodiscard]] Goal goal_of(const Point& point);

/// @throws UsageError if a name is not known or values contradict each other
[[nodiscard]] Question question_of(const Point& point);

/// Odds of being in time that an answer must have, 0 to 1. @throws UsageError for 100 % or more
[[nodiscard]] double odds_of(const Point& point);

/// Of the model whose training step is generated. @throws UsageError, DataError if it is not known
[[nodiscard]] TrainingStep gpt_shape_of(const Point& point);

/// Nothing for fixed traces and for one stage with one microbatch. @throws UsageError
[[nodiscard]] std::optional<PipelineSplit> pipeline_of(const Point& point);

/// What a change of clock takes. @throws UsageError for a pipeline with a dwell, or with a latency
/// beyond the stall: neither is modelled there
[[nodiscard]] std::optional<SwitchModel> switching_of(const Point& point);

/// Shape of a generated trace; nothing for a fixed one.
struct WorkShape {
  std::string model;
  std::uint64_t batch = 0, sequence = 0, tensor_parallel = 0, data_parallel = 0,
                pipeline_parallel = 0, microbatches = 0;
};

[[nodiscard]] std::optional<WorkShape> work_shape_of(const Point& point);

}  // namespace rubato
