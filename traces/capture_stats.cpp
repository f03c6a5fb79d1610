#include "traces/capture_stats.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/plausible.hpp"
#include "traces/repeats.hpp"

namespace rubato {

namespace {

void add(LaunchSums& sums, const CapturedLaunch& launch) {
  ++sums.launches;
  sums.time_ns += launch.duration_ns;
}

bool is_kernel(const Kernel& kernel) {
  return kernel.kind != KernelClass::memcpy && kernel.kind != KernelClass::memset;
}

// Each repetition becomes a segment, and so does what lies between two of them.
std::vector<Segment> folded(const std::vector<KernelId>& launches) {
  constexpr std::size_t least_saved = 8;  // launches; fewer are not worth a segment
  std::vector<std::uint32_t> symbols;
  for (const KernelId launch : launches) symbols.push_back(launch.value);
  std::vector<Segment> segments;
  const auto append = [&](std::size_t first, std::size_t last, std::size_t repeat) {
    if (first == last) return;
    const auto at = [&](std::size_t i) {
      return launches.begin() + static_cast<std::ptrdiff_t>(i);
    };
    segments.push_back({fmt::format("part {}", segments.size() + 1),
                        static_cast<std::uint32_t>(repeat),
                        {at(first), at(last)}});
  };
  std::size_t done = 0;
  for (const Repetition& found : best_repetitions(symbols, least_saved)) {
    append(done, found.first, 1);
    append(found.first, found.first + found.period, found.count());
    done = found.end;
  }
  append(done, launches.size(), 1);
  return segments;
}

std::uint32_t chosen_device(const Capture& capture, const FoldOptions& options) {
  if (options.device) {
    const auto found = std::ranges::find(capture.devices, *options.device, &CaptureDevice::id);
    if (found == capture.devices.end())
      throw UsageError(fmt::format("there is no device {} in {}", *options.device, capture.name));
    return static_cast<std::uint32_t>(found - capture.devices.begin());
  }
  std::vector<std::uint64_t> launches(capture.devices.size(), 0);
  for (const CapturedLaunch& launch : capture.launches)
    ++launches[capture.streams[launch.stream].device];
  return static_cast<std::uint32_t>(std::ranges::max_element(launches) - launches.begin());
}

// The step with the most launches, the last of equals: a window may begin or end inside one.
std::optional<std::uint32_t> chosen_step(const Capture& capture, const FoldOptions& options) {
  if (capture.steps.empty()) {
    if (options.step) throw UsageError(fmt::format("there are no steps in {}", capture.name));
    return std::nullopt;
  }
  if (options.step) {
    if (*options.step >= capture.steps.size())
      throw UsageError(fmt::format("step {} of {}; expected 0 to {}", *options.step, capture.name,
                                   capture.steps.size() - 1));
    return options.step;
  }
  std::vector<std::uint64_t> launches(capture.steps.size(), 0);
  for (const CapturedLaunch& launch : capture.launches) {
    if (launch.step) ++launches[*launch.step];
  }
  const auto most = std::max_element(launches.rbegin(), launches.rend());
  return static_cast<std::uint32_t>(launches.rend() - most - 1);
}

}  // namespace

CaptureStats capture_stats(const Capture& capture) {
  CaptureStats stats;
  stats.by_stream.resize(capture.streams.size());
  stats.by_step.resize(capture.steps.size());
  stats.by_class.resize(static_cast<std::size_t>(KernelClass::other) + 1);
  stats.by_pass.resize(static_cast<std::size_t>(Pass::unknown) + 1);
  std::set<std::string_view> names;
  std::int64_t first_ns = 0, last_ns = 0, busy_until_ns = 0;
  for (const CapturedLaunch& launch : capture.launches) {
    const Kernel& kernel = capture.kernels[index(launch.kernel)];
    add(stats.by_class[static_cast<std::size_t>(kernel.kind)], launch);
    switch (kernel.work_source) {
      case WorkSource::measured: stats.coverage.measured_ns += launch.duration_ns; break;
      case WorkSource::derived: stats.coverage.derived_ns += launch.duration_ns; break;
      case WorkSource::guessed: stats.coverage.guessed_ns += launch.duration_ns; break;
      case WorkSource::unknown: stats.coverage.unknown_ns += launch.duration_ns; break;
    }
    if (!is_kernel(kernel)) {
      add(kernel.kind == KernelClass::memcpy ? stats.copies : stats.memsets, launch);
      continue;
    }
    if (stats.kernels.launches == 0) first_ns = busy_until_ns = launch.start_ns;
    add(stats.kernels, launch);
    if (kernel.kind == KernelClass::communication) add(stats.collectives, launch);
    names.insert(kernel.label);
    last_ns = std::max(last_ns, launch.end_ns());
    stats.busy_ns +=
        std::max<std::int64_t>(0, launch.end_ns() - std::max(launch.start_ns, busy_until_ns));
    busy_until_ns = std::max(busy_until_ns, launch.end_ns());
    if (launch.launch_ns) ++stats.launched_in_file;
    add(stats.by_stream[launch.stream], launch);
    if (launch.step) add(stats.by_step[*launch.step], launch);
    add(stats.by_pass[static_cast<std::size_t>(launch.pass)], launch);
  }
  stats.names = names.size();
  stats.span_ns = stats.kernels.launches > 0 ? last_ns - first_ns : 0;
  return stats;
}

Trace fold(const Capture& capture, const FoldOptions& options) {
  const std::uint32_t device = chosen_device(capture, options);
  const std::optional<std::uint32_t> step = chosen_step(capture, options);
  const auto wanted = [&](const CapturedLaunch& launch) {
    return capture.streams[launch.stream].device == device && (!step || launch.step == step);
  };
  // A collective waits for other ranks: its stream may be the longest, but does no work.
  std::vector<LaunchSums> computing(capture.streams.size());
  for (const CapturedLaunch& launch : capture.launches) {
    if (!wanted(launch)) continue;
    const Kernel& kernel = capture.kernels[index(launch.kernel)];
    if (is_kernel(kernel) && kernel.kind != KernelClass::communication)
      add(computing[launch.stream], launch);
  }
  const auto busiest = std::ranges::max_element(
      computing, {}, [](const LaunchSums& sums) { return std::pair(sums.time_ns, sums.launches); });
  if (busiest == computing.end() || busiest->launches == 0)
    throw UsageError(fmt::format("there is no launch to take in {}: collectives and copies at most",
                                 capture.name));
  const auto stream = static_cast<std::uint32_t>(busiest - computing.begin());
  const bool timed = busiest->time_ns > 0;
  Trace trace;
  trace.name = capture.name;
  trace.provenance = capture.provenance;
  trace.captured = CaptureConditions{.device = capture.devices[device].name, .clock = {}};
  std::vector<std::optional<KernelId>> renumbered(capture.kernels.size());
  std::vector<LaunchSums> sums;
  std::vector<KernelId> launches;
  for (const CapturedLaunch& launch : capture.launches) {
    if (!wanted(launch) || launch.stream != stream || (timed && launch.duration_ns == 0)) continue;
    std::optional<KernelId>& kernel = renumbered[index(launch.kernel)];
    if (!kernel) {
      kernel = id_at<KernelId>(trace.kernels.size());
      trace.kernels.push_back(capture.kernels[index(launch.kernel)]);
      sums.emplace_back();
    }
    add(sums[index(*kernel)], launch);
    launches.push_back(*kernel);
  }
  for (std::size_t k = 0; k < sums.size(); ++k) {
    if (!timed) break;
    trace.kernels[k].measured_time_s =
        1e-9 * static_cast<double>(sums[k].time_ns) / static_cast<double>(sums[k].launches);
    if (implausible_launch_time(trace.kernels[k].measured_time_s))
      trace.kernels[k].measured_time_s.reset();
  }
  trace.provenance.options =
      fmt::format("device={} stream={} step={}", capture.devices[device].id,
                  capture.streams[stream].id, step ? capture.steps[*step].name : "all");
  // Of a generated run also the spec that it was made with.
  for (const std::string_view item : split(capture.provenance.options, ' ')) {
    if (item.starts_with("gpu=")) trace.provenance.options += fmt::format(" {}", item);
  }
  trace.segments = folded(launches);
  validate(trace, trace.name);
  return trace;
}

}  // namespace rubato
