#pragma once
// A plan in the form that Zeus's pipeline frequency optimizer loads.

#include <string>

#include "sim/pipeline_run.hpp"

namespace rubato {

/// Text of a `freqs_pipeline_NNNNN.py`: one Python literal, a list per stage of
/// ('forward', MHz) and ('backward', MHz) in running order, and time and energy as comments. For
/// PointSolution, and for PointSolution3D with tensor or data parallelism.
///
/// Zeus sets neither memory clocks nor power limits: one that is the same for all passes stands in
/// a comment. Core clocks are rounded to whole MHz, the unit that the driver takes; the driver sets
/// the next clock that the GPU has. Passes that end a step are left out.
/// @param run  of the plan, for the comments
/// @throws UsageError if the schedule has other passes that Zeus does not know, or if memory clocks
///         or power limits differ
[[nodiscard]] std::string zeus_schedule(const PipelineWork& work, const PipelinePlan& plan,
                                        const PipelineRun& run);

/// "freqs_pipeline_00007.py"
[[nodiscard]] std::string zeus_file_name(std::size_t number);

}  // namespace rubato
