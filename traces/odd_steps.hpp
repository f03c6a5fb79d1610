#pragma once
// Steps of a capture that are unlike the others: a checkpoint, a stall, the first batch. Slack is
// of the usual step, so they are taken out before plans are made.

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// A step and how long it took over the median one.
struct OddStep {
  std::uint32_t position = 0;  ///< in Capture::steps
  double over_median = 1.0;
};

/// Steps, from the beginning of each to that of the next, that take over 1.25 times the median one
/// or less than 0.75 times. None in a capture of fewer than four marked steps, or where more than a
/// third would be.
[[nodiscard]] std::vector<OddStep> odd_steps(const Capture& capture);

/// The capture without a step: what came after follows what was before.
/// @return nothing if the step cannot be taken out: work or waits of the host reach over its ends
/// @pre position < capture.steps.size()
[[nodiscard]] std::optional<Capture> without_step(const Capture& capture, std::uint32_t position);

}  // namespace rubato
