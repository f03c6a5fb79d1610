#include "traces/import/device_clock.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"

namespace rubato {

namespace {

// Of a GPU's waits, how many may end early for other reasons: a call of another stream, lost
// events.
constexpr double usual_early_share = 0.1;
// Where a file has no waits to check with: how many launches must show that the clock is ahead.
constexpr double least_leading_share = 0.05;
// Oscillators of computers differ by less.
constexpr double most_drift = 200e-6;

// At a time of the GPU's clock: by how much it must be moved at least, or may be at most.
struct ClockBound {
  std::int64_t at_ns = 0;
  std::int64_t move_ns = 0;
};

struct ClockBounds {
  std::vector<ClockBound> launches;  // the call of a launch less its start: at least
  std::vector<ClockBound> waits;     // the end of a wait less that of its launch: at most
  std::int64_t first_call_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_call_ns = std::numeric_limits<std::int64_t>::min();
  double busy_ns = 0.0;  // of all launches
};

// A line: what to add to a time.
struct ClockMove {
  double ns = 0.0;
  double per_ns = 0.0;
  std::int64_t from_ns = 0;

  [[nodiscard]] std::int64_t at(std::int64_t time_ns) const {
    return static_cast<std::int64_t>(
        std::ceil(ns + per_ns * static_cast<double>(time_ns - from_ns)));
  }
};

// What calls certainly waited for: a copy for itself, a stream for what it was given, a device for
// all its streams. Of a process with several GPUs it is not said which one was meant.
std::vector<ClockBounds> bounds_of(const Capture& capture) {
  std::vector<ClockBounds> bounds(capture.devices.size());
  std::vector<std::uint32_t> called;
  std::map<std::int64_t, std::set<std::uint32_t>> devices_of;  // by process
  const auto device_of = [&](const CapturedLaunch& launch) {
    return capture.streams[launch.stream].device;
  };
  const auto process_of = [&](const CapturedCall& call) {
    return capture.threads[call.thread].process;
  };
  for (std::uint32_t i = 0; i < capture.launches.size(); ++i) {
    const CapturedLaunch& launch = capture.launches[i];
    if (!launch.launch_ns) continue;
    called.push_back(i);
    ClockBounds& own = bounds[device_of(launch)];
    own.launches.push_back({launch.start_ns, *launch.launch_ns - launch.start_ns});
    own.first_call_ns = std::min(own.first_call_ns, *launch.launch_ns);
    own.last_call_ns = std::max(own.last_call_ns, *launch.launch_ns);
    own.busy_ns += static_cast<double>(launch.duration_ns);
    if (!launch.call) continue;
    const CapturedCall& call = capture.calls[*launch.call];
    devices_of[process_of(call)].insert(device_of(launch));
    if (call.kind == CallKind::blocking_copy)
      own.waits.push_back({launch.end_ns(), call.end_ns() - launch.end_ns()});
  }
  sort_by(called, [&](std::uint32_t i) { return *capture.launches[i].launch_ns; });
  std::vector<std::optional<std::int64_t>> over_ns(capture.streams.size());  // of what was called
  auto next = called.begin();
  for (const CapturedCall& call : capture.calls) {
    for (; next != called.end() && *capture.launches[*next].launch_ns < call.start_ns; ++next) {
      auto& end_ns = over_ns[capture.launches[*next].stream];
      end_ns = std::max(end_ns.value_or(capture.launches[*next].end_ns()),
                        capture.launches[*next].end_ns());
    }
    const auto wait_for = [&](std::uint32_t stream) {
      if (over_ns[stream])
        bounds[capture.streams[stream].device].waits.push_back(
            {*over_ns[stream], call.end_ns() - *over_ns[stream]});
    };
    if (call.kind == CallKind::stream_sync && call.stream) wait_for(*call.stream);
    if (call.kind != CallKind::device_sync) continue;
    const auto devices = devices_of.find(process_of(call));
    if (devices == devices_of.end() || (!call.stream && devices->second.size() > 1)) continue;
    const std::uint32_t device =
        call.stream ? capture.streams[*call.stream].device : *devices->second.begin();
    for (std::uint32_t s = 0; s < capture.streams.size(); ++s) {
      if (capture.streams[s].device == device) wait_for(s);
    }
  }
  return bounds;
}

bool waits_hold(const ClockBounds& bounds, const ClockMove& move) {
  const auto early = std::ranges::count_if(bounds.waits, [&](const ClockBound& wait) {
    return move.at(wait.at_ns) > wait.move_ns + clock_error_ns;
  });
  return static_cast<double>(early) <= usual_early_share * static_cast<double>(bounds.waits.size());
}

// No launch waits longer for its turn than all calls and launches take: times of which one is apart
// from all others, such as 0 for "not recorded", are not another clock's.
bool is_one_clock(const ClockBounds& bounds, std::int64_t least_ns) {
  const std::int64_t longest_ns =
      least_ns - std::ranges::min(bounds.launches, {}, &ClockBound::move_ns).move_ns;
  return static_cast<double>(longest_ns) <=
         bounds.busy_ns + static_cast<double>(bounds.last_call_ns - bounds.first_call_ns);
}

// The line above all points whose mean distance from them is least: of the sides of their upper
// hull, the one above their mean time, as steep as clocks can be. Moon, Skelly and Towsley,
// "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999.
ClockMove line_above(std::vector<ClockBound> points) {
  sort_by(points, [](const ClockBound& point) { return point.at_ns; });
  const std::int64_t from_ns = points.front().at_ns;
  double mean_ns = 0.0;
  for (const ClockBound& point : points)
    mean_ns += static_cast<double>(point.at_ns - from_ns) / static_cast<double>(points.size());
  const auto slope = [](const ClockBound& a, const ClockBound& b) {
    return static_cast<double>(b.move_ns - a.move_ns) /
           std::max(static_cast<double>(b.at_ns - a.at_ns), 1.0);
  };
  std::vector<ClockBound> hull;
  for (const ClockBound& point : points) {
    while (hull.size() > 1 &&
           slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), point))
      hull.pop_back();
    hull.push_back(point);
  }
  ClockMove line{0.0, 0.0, from_ns};
  for (std::size_t i = 1; i < hull.size(); ++i) {
    line.per_ns = slope(hull[i - 1], hull[i]);
    if (static_cast<double>(hull[i].at_ns - from_ns) >= mean_ns) break;
  }
  line.per_ns = std::clamp(line.per_ns, -most_drift, most_drift);
  line.ns = -std::numeric_limits<double>::infinity();
  for (const ClockBound& point : points)
    line.ns = std::max(line.ns, static_cast<double>(point.move_ns) -
                                    line.per_ns * static_cast<double>(point.at_ns - from_ns));
  return line;
}

// How a GPU's times have to be moved; nothing where they agree with the host's, or cannot be made
// to agree.
std::optional<ClockMove> move_of(const ClockBounds& bounds) {
  if (bounds.launches.empty()) return std::nullopt;
  const std::int64_t least_ns = std::ranges::max(bounds.launches, {}, &ClockBound::move_ns).move_ns;
  if (least_ns > 0) {
    const auto leading = std::ranges::count_if(
        bounds.launches, [](const ClockBound& launch) { return launch.move_ns > 0; });
    if (!is_one_clock(bounds, least_ns)) return std::nullopt;
    if (bounds.waits.empty() &&
        static_cast<double>(leading) <
            least_leading_share * static_cast<double>(bounds.launches.size()))
      return std::nullopt;
    const ClockMove constant{static_cast<double>(least_ns), 0.0, 0};
    if (waits_hold(bounds, constant)) return constant;
    const ClockMove line = line_above(bounds.launches);
    return waits_hold(bounds, line) ? std::optional(line) : std::nullopt;
  }
  // Behind the host's: waits end before what they waited for.
  if (bounds.waits.empty() || waits_hold(bounds, {})) return std::nullopt;
  const std::int64_t most_ns = std::ranges::min(bounds.waits, {}, &ClockBound::move_ns).move_ns;
  return most_ns >= least_ns ? std::optional(ClockMove{static_cast<double>(most_ns), 0.0, 0})
                             : std::nullopt;
}

std::string text_of(const CaptureDevice& device, const ClockMove& move) {
  const double us = 1e-3 * std::abs(move.ns);
  return fmt::format(
      "an offset of the clock of GPU {}, {:.1f} us {} the host's{}: its times are moved by it",
      device.id, us, move.ns > 0.0 ? "ahead of" : "behind",
      move.per_ns == 0.0
          ? ""
          : fmt::format(" at first, drifting by {:+.1f} us a second", 1e6 * move.per_ns));
}

}  // namespace

void align_device_clocks(Capture& capture) {
  const std::vector<ClockBounds> bounds = bounds_of(capture);
  bool moved = false;
  for (std::uint32_t device = 0; device < bounds.size(); ++device) {
    const std::optional<ClockMove> move = move_of(bounds[device]);
    if (!move) continue;
    moved = true;
    for (CapturedLaunch& launch : capture.launches) {
      if (capture.streams[launch.stream].device == device)
        launch.start_ns += move->at(launch.start_ns);
    }
    if (std::abs(move->ns) > static_cast<double>(clock_error_ns))
      capture.left_out.push_back(text_of(capture.devices[device], *move));
  }
  if (!moved) return;
  std::ranges::stable_sort(capture.launches, [](const auto& a, const auto& b) {
    return std::pair(a.start_ns, a.stream) < std::pair(b.start_ns, b.stream);
  });
}

}  // namespace rubato
