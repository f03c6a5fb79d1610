#pragma once
// Pictures of pipelines, and the page that holds them.

#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// A run and its caption.
struct DrawnRun {
  std::string title;
  const PipelineRun* run = nullptr;
};

/// Gantt chart as SVG: one row per stage, runs one below the other on one time axis, passes
/// coloured by power on one scale, the critical path outlined.
[[nodiscard]] std::string gantt_svg(const PipelineWork& work, const std::vector<DrawnRun>& runs);

/// Time against energy of an iteration as SVG: the frontier of free durations, the baseline,
/// and the plans.
[[nodiscard]] std::string frontier_svg(const PipelinePlanner& planner,
                                       const std::vector<PipelineResult>& plans,
                                       const std::string& baseline);

/// What a page says around its pictures; plain text.
struct PipelineCaption {
  std::string subtitle;  ///< which pipeline
  std::string baseline;  ///< the name of what changes are against
  std::string notes;     ///< lines
};

/// One self-contained page: the first plan's answer, pictures, clocks and a table of the plans.
[[nodiscard]] std::string pipeline_page(const PipelinePlanner& planner,
                                        const std::vector<PipelineResult>& plans,
                                        const PipelineCaption& caption, const OutputTable& table);

}  // namespace rubato
