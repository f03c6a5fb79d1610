#pragma once
// A clock for every launch of a trace.

#include <string>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_grid.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// One clock per site of the compact trace: per launch in its segments, each repeated as often as
/// the segment (see Site). Ids are of one ClockGrid.
struct Plan {
  std::vector<ClockId> clock_of_site;
  /// The trace's launches, divided into other segments where repeats of one get different clocks;
  /// sites are then of these. Empty: the trace's own segments.
  std::vector<Segment> segments = {};

  /// The segments whose launches, one after the other, are the sites.
  [[nodiscard]] const std::vector<Segment>& segments_of(const Trace& trace) const noexcept {
    return segments.empty() ? trace.segments : segments;
  }
};

/// Sites of a plan, in launch order.
[[nodiscard]] std::vector<Site> sites(const Trace& trace, const Plan& plan);

/// The same clock everywhere.
[[nodiscard]] Plan uniform_plan(const Trace& trace, ClockId clock);

/// One clock per kernel, `clock_of_kernel` has shape [kernels].
[[nodiscard]] Plan plan_by_kernel(const Trace& trace, const std::vector<ClockId>& clock_of_kernel);

}  // namespace rubato
