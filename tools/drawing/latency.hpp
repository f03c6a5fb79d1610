#pragma once
// The picture of what latencies of clock changes leave of a saving.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/confidence/confidence.hpp"
#include "explorer/goal.hpp"
#include "tools/drawing/answer.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

/// A device for which somebody published how long a change of clock takes.
struct PublishedLatency {
  double latency_us;
  std::string_view device;
};

/// As cited by Spaan et al., arXiv 2601.08539, and the works they name; ascending.
inline constexpr std::array published_latencies{
    PublishedLatency{1.0, "Raven Ridge"}, PublishedLatency{1e3, "Ascend NPU"},
    PublishedLatency{6e3, "H200"}, PublishedLatency{150e3, "Quadro RTX 6000"}};

/// Granularities that are compared, in the order of LatencyPoint::plans.
inline constexpr std::array compared_granularities{Granularity::iteration, Granularity::pass,
                                                   Granularity::kernel, Granularity::automatic};

/// A plan under a latency, against the default clocks.
struct PlanUnderLatency {
  double time_change_pct = 0.0;
  double energy_change_pct = 0.0;
  SavingInterval interval = {};
  double gap_pct = 0.0;
  std::int64_t switches = 0;
  std::int64_t late_launches = 0;
};

/// One latency. The device waits for all of it, or runs on at the old clock.
struct LatencyPoint {
  double latency_us = 0.0;
  bool waits = false;
  /// Shape as compared_granularities; nothing where no plan was found.
  std::array<std::optional<PlanUnderLatency>, compared_granularities.size()> plans;
};

/// What the picture says about the sweep.
struct LatencyCaption {
  std::string trace, gpu, clocks;
  double power_limit_w = 0.0;
  double slack_pct = 0.0;
  std::string model_error = {};  ///< see model_error_text
};

/// Changes of energy and time over the latency on a logarithmic axis, a column for devices that
/// run on and one for devices that wait (as far as there are points), published latencies marked.
/// @param points  at least one, latencies > 0
[[nodiscard]] std::string latency_svg(const LatencyCaption& caption,
                                      std::span<const LatencyPoint> points,
                                      Screen screen = Screen::desk);

/// The change of energy by a plan that knows the latency.
struct LatencySaving {
  double latency_us = 0.0;
  bool waits = false;
  double energy_change_pct = 0.0;
  std::optional<Interval> interval = {};
};

/// What such plans save at the shortest latency and at the longest, where the clock is waited for
/// and where not, as they come.
/// @param who  waits or runs on: "device"
[[nodiscard]] Answer latency_answer(std::span<const LatencySaving> savings, std::string_view who);
[[nodiscard]] Answer latency_answer(std::span<const LatencyPoint> points);

/// An HTML page with the picture and the numbers behind it.
[[nodiscard]] std::string latency_page(const LatencyCaption& caption,
                                       std::span<const LatencyPoint> points);

}  // namespace rubato
