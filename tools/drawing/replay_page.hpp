#pragma once
// A replay as one HTML page: predicted over captured, verdicts with error bars, steps.

#include <string>

#include "explorer/results/measurements.hpp"
#include "tools/drawing/answer.hpp"

namespace rubato {

/// Predicted beside captured time, and how much of the GPU time was compared and met.
[[nodiscard]] Answer replay_answer(const ReplayComparison& comparison);

/// A page that needs nothing else; names from files are escaped.
[[nodiscard]] std::string replay_page(const ReplayRequest& request, const CaptureReplay& replay,
                                      const ReplayComparison& comparison,
                                      const std::optional<PowerEvidence>& power);

}  // namespace rubato
