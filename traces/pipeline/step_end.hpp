#pragma once
// What a stage does after its last pass: the end of a training step.

#include <cstdint>

#include "traces/pipeline/profile.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Appends to every stage what ends a step. The optimizer waits for the gradients of all stages,
/// since it clips by their norm. Reductions wait for their own stage only: other replicas are taken
/// to be as fast.
/// @param tied_embeddings  first and last stage reduce the gradients of the embeddings that both
///        have, after the reduction over replicas and once both are there; needs two stages
[[nodiscard]] PipelineSchedule with_step_end(const PipelineSchedule& schedule, bool all_reduce,
                                             bool optimizer, bool tied_embeddings = false);

/// Puts the reduction of tied embeddings into a profile, in place of what the profile has of it. It
/// takes as long at every clock of a stage, and its GPU draws what it draws while it waits.
/// @param first, last   stages of the profile
/// @throws DataError if the profile has no backward pass of these stages
void set_embedding_reduction(PipelineProfile& profile, std::uint32_t first, std::uint32_t last,
                             double time_s);

}  // namespace rubato
