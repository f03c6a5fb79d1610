#pragma once
// A plan in the form that Zeus's pipeline frequency optimizer loads.

#include <string>

#include "sim/pipeline_run.hpp"

namespace rubato {

/// Text of a `freqs_pipeline_NNNNN.py`: one Python literal, a list per stage of
/// ('forward', MHz) and ('backward', MHz) in running order; time and energy as comments. For
/// PointSolution, and for PointSolution3D with tensor or data parallelism.
/// @param run  of the plan, for the comments
/// Zeus does not set memory clocks: one that is the same for all passes stands in a comment.
/// Core clocks are rounded to whole MHz, the unit the driver takes; it sets the next one that the
/// GPU has.
/// @throws UsageError if the schedule has passes that Zeus does not know, or memory clocks differ
[[nodiscard]] std::string zeus_schedule(const PipelineWork& work, const PipelinePlan& plan,
                                        const PipelineRun& run);

/// "freqs_pipeline_00007.py"
[[nodiscard]] std::string zeus_file_name(std::size_t number);

}  // namespace rubato
