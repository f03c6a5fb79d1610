#pragma once
// What a stage does after its last pass: the end of a training step.

#include <cstdint>

#include "traces/pipeline/profile.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Appends to every stage what ends a step. The optimizer waits for the gradients of all stages,
/// whose norm it clips by; reductions wait for their own stage only, as other replicas keep step.
/// @param tied_embeddings  first and last stage reduce the gradients of the embeddings that both
///        have, after the reduction over replicas and once both are there; needs two stages
[[nodiscard]] PipelineSchedule with_step_end(const PipelineSchedule& schedule, bool all_reduce,
                                             bool optimizer, bool tied_embeddings = false);

/// The reduction of tied embeddings in a profile: it takes as long at every clock of a stage, whose
/// GPU then draws what it draws while it waits. Replaces what the profile has of it.
/// @param first, last  stages of the profile
/// @param only_default  the highest clock alone
/// @throws DataError if the profile has no backward pass of these stages
void set_embedding_reduction(PipelineProfile& profile, std::uint32_t first, std::uint32_t last,
                             double time_s, bool only_default = false);

}  // namespace rubato
