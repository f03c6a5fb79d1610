#pragma once
// Pictures of pipelines.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "explorer/pipeline/planner.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

/// Of passes, in the order of PassKind.
inline constexpr std::array pass_letters{'F', 'B', 'R', 'I', 'W', 'A', 'E', 'O'};
static_assert(pass_letters.size() == static_cast<std::size_t>(PassKind::optimizer) + 1);

/// A run and its caption.
struct DrawnRun {
  std::string title;
  const PipelineRun* run = nullptr;
};

/// Gantt chart as SVG: one row per stage, runs one below the other on one time axis, passes
/// coloured by power on one scale, the critical path outlined.
[[nodiscard]] std::string gantt_svg(const PipelineWork& work, const std::vector<DrawnRun>& runs);

}  // namespace rubato
