#include "sim/capture/order.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace rubato {

namespace {

constexpr double s_per_ns = 1e-9;

// A call after the start of its own launch is a clock error of the profiler.
bool call_known(const CapturedLaunch& launch) {
  return launch.launch_ns && *launch.launch_ns <= launch.start_ns;
}

std::vector<HostCall> calls_of(const Capture& capture, std::vector<std::uint32_t> launches,
                               std::int64_t origin_ns) {
  const auto call_ns = [&](std::uint32_t i) { return *capture.launches[i].launch_ns; };
  std::ranges::stable_sort(launches, {}, call_ns);
  std::vector<HostCall> calls;
  std::int64_t before_ns = origin_ns;
  std::optional<std::uint32_t> last_end;
  for (const std::uint32_t i : launches) {
    HostCall call{i, {}, static_cast<double>(call_ns(i) - before_ns) * s_per_ns};
    if (last_end && !calls.empty()) {
      const std::int64_t end_ns = capture.launches[*last_end].end_ns();
      if (before_ns + sync_window_ns < end_ns && end_ns <= call_ns(i) &&
          call_ns(i) <= end_ns + sync_window_ns) {
        call.awaited = *last_end;
        call.gap_s = static_cast<double>(call_ns(i) - end_ns) * s_per_ns;
      }
    }
    before_ns = call_ns(i);
    if (!last_end || capture.launches[i].end_ns() > capture.launches[*last_end].end_ns())
      last_end = i;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace

CaptureOrder capture_order(const Capture& capture, std::int64_t origin_ns) {
  CaptureOrder order;
  const auto& launches = capture.launches;
  order.launches.resize(launches.size());
  std::vector<std::uint32_t> by_start(launches.size());
  std::iota(by_start.begin(), by_start.end(), 0U);
  std::ranges::stable_sort(by_start, {}, [&](std::uint32_t i) { return launches[i].start_ns; });

  std::vector<std::optional<std::uint32_t>> last_on_stream(capture.streams.size());
  std::multimap<std::int64_t, std::uint32_t> ends;  // of launches that started before
  std::vector<std::vector<std::uint32_t>> called(capture.devices.size());
  for (const std::uint32_t i : by_start) {
    const CapturedLaunch& launch = launches[i];
    LaunchOrder& own = order.launches[i];
    own.previous = last_on_stream[launch.stream];
    own.has_call = call_known(launch);
    std::int64_t ready_ns = origin_ns;
    if (own.has_call) ready_ns = std::max(ready_ns, *launch.launch_ns);
    if (own.previous) {
      const std::int64_t end_ns = launches[*own.previous].end_ns();
      order.overlap_s +=
          static_cast<double>(std::max<std::int64_t>(end_ns - launch.start_ns, 0)) * s_per_ns;
      ready_ns = std::max(ready_ns, end_ns);
    }
    // The last end before the start is the event, if nothing later explains the start.
    for (auto end = ends.upper_bound(launch.start_ns); end != ends.begin();) {
      --end;
      if (end->first <= ready_ns || launch.start_ns - end->first > event_window_ns) break;
      if (launches[end->second].stream == launch.stream) continue;
      own.awaited = end->second;
      ready_ns = end->first;
      break;
    }
    own.lag_s =
        static_cast<double>(std::max<std::int64_t>(launch.start_ns - ready_ns, 0)) * s_per_ns;
    if (own.has_call) called[capture.streams[launch.stream].device].push_back(i);
    last_on_stream[launch.stream] = i;
    ends.emplace(launch.end_ns(), i);
    while (ends.size() > 4096) ends.erase(ends.begin());  // far older than the window
  }
  for (auto& list : called) order.calls.push_back(calls_of(capture, std::move(list), origin_ns));
  return order;
}

}  // namespace rubato
