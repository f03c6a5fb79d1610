#pragma once
// Plans of a pipeline as one page.

#include <string>
#include <string_view>
#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "tools/drawing/answer.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// What a page says around its pictures; plain text.
struct PipelineCaption {
  std::string subtitle;  ///< which pipeline
  std::string baseline;  ///< the name of what changes are against
  std::string notes;     ///< lines
  std::string doubts;    ///< of pipeline_answer
};

/// The clocks of the first plan that was found, and what they change.
/// @param doubts  behind the saving, see doubts_text()
[[nodiscard]] Answer pipeline_answer(const PipelinePlanner& planner,
                                     const std::vector<PipelineResult>& plans,
                                     std::string_view doubts);

/// One self-contained page: the first plan's answer, pictures, clocks and a table of the plans.
[[nodiscard]] std::string pipeline_page(const PipelinePlanner& planner,
                                        const std::vector<PipelineResult>& plans,
                                        const PipelineCaption& caption, const OutputTable& table);

}  // namespace rubato
