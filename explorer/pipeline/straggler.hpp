#pragma once
// Replicas that wait for a slower one, a straggler, need not hurry. What they waste if they do is
// the "extrinsic energy bloat" of Perseus.

#include <span>
#include <vector>

#include "explorer/pipeline/planner.hpp"

namespace rubato {

/// One pipeline while another one takes `time_s` for the iteration. Energies count until then,
/// waiting included, with one GPU per stage.
struct StragglerPoint {
  double time_s = 0.0;
  double baseline_energy_j = 0.0;   ///< at the highest clocks, then waiting
  double intrinsic_energy_j = 0.0;  ///< with the plan for the baseline's time, then waiting
  PipelineResult result;            ///< of the plan that knows of the straggler
};

/// One point for each time.
/// @param times_s  iteration times of the slowest pipeline, each at least the baseline's
/// @throws UsageError if one is shorter
[[nodiscard]] std::vector<StragglerPoint> straggle(const PipelinePlanner& planner,
                                                   std::span<const double> times_s,
                                                   const RunContext& context = {});

/// The pipeline after it has lost a stage: one stage less, the work shared out in equal parts.
/// Stage k of the new pipeline has the options of stage k * old / new (numbers of stages, rounded
/// down). They are lengthened so that all stages together take as long at their highest clocks as
/// before.
/// @throws UsageError if there are fewer than two stages, several chunks, or the graph was read
///         from a file
[[nodiscard]] PipelineWork without_one_stage(const PipelineWork& work);

}  // namespace rubato
