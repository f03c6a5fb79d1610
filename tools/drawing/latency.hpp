#pragma once
// What latencies of clock changes leave of a saving.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/confidence/confidence.hpp"
#include "explorer/goal.hpp"

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
inline constexpr std::array compared_granularities{Granularity::run, Granularity::pass,
                                                   Granularity::kernel, Granularity::segment};

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
[[nodiscard]] std::string latency_answer(std::span<const LatencySaving> savings,
                                         std::string_view who);
[[nodiscard]] std::string latency_answer(std::span<const LatencyPoint> points);

}  // namespace rubato
