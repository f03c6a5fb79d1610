#include "traces/trace_capture.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/launch_limit.hpp"

namespace rubato {

Capture as_capture(const Trace& trace, MissingTimes missing) {
  refuse_to_list_too_many(trace.segments);
  const auto untimed = std::ranges::find_if(
      trace.kernels, [](const Kernel& kernel) { return !kernel.measured_time_s; });
  const bool timed = untimed == trace.kernels.end();
  if (!timed && missing == MissingTimes::error) {
    throw DataError(
        fmt::format("{}: kernel '{}' has no measured_time_s", trace.name, untimed->name),
        {.in = {},
         .hint = "a replay compares with a captured run; import one, or add "
                 "measured_time_s"});
  }
  Capture capture;
  capture.name = trace.name;
  capture.provenance = trace.provenance;
  capture.devices.resize(1);
  if (trace.captured) capture.devices[0].name = trace.captured->device;
  capture.streams.resize(1);
  capture.kernels = trace.kernels;
  capture.step_source = StepSource::annotation;  // a trace is one step
  std::int64_t now_ns = 0;
  for (const Segment& segment : trace.segments) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      for (const KernelId id : segment.launches) {
        const Kernel& kernel = trace.kernels[index(id)];
        CapturedLaunch launch;
        launch.kernel = id;
        launch.start_ns = now_ns;
        launch.duration_ns = timed ? std::llround(*kernel.measured_time_s * 1e9) : 0;
        launch.step = 0;
        launch.pass = kernel.pass;
        now_ns = launch.end_ns();
        capture.launches.push_back(launch);
      }
    }
  }
  capture.steps = {{"step", 0, now_ns}};
  if (!timed) {
    capture.left_out.push_back(
        fmt::format("times: kernel '{}' has no measured_time_s", printable(untimed->name)));
  }
  return capture;
}

Capture only_step(Capture capture, std::string_view step) {
  const auto named = std::ranges::find(capture.steps, step, &CapturedStep::name);
  auto position = static_cast<std::uint64_t>(named - capture.steps.begin());
  if (named == capture.steps.end()) position = parse_count(step).value_or(capture.steps.size());
  if (position >= capture.steps.size()) {
    std::vector<std::string> names;
    for (const CapturedStep& known : capture.steps) names.push_back(printable(known.name));
    throw UsageError(fmt::format("{}: there is no step '{}'; it has: {}", capture.name,
                                 printable(step), fmt::join(names, ", ")));
  }
  return only_step(std::move(capture), static_cast<std::uint32_t>(position));
}

Capture only_step(Capture capture, std::uint32_t position) {
  std::erase_if(capture.launches,
                [&](const CapturedLaunch& launch) { return launch.step != position; });
  for (CapturedLaunch& launch : capture.launches) launch.step = 0;
  capture.steps = {capture.steps[position]};
  return capture;
}

Capture part_of(const Capture& capture, const std::function<bool(const CapturedCall&)>& keeps_call,
                const std::function<bool(const CapturedLaunch&)>& keeps_launch) {
  Capture kept = capture;
  std::vector<std::optional<std::uint32_t>> place(capture.calls.size());
  kept.calls.clear();
  for (std::size_t c = 0; c < capture.calls.size(); ++c) {
    if (!keeps_call(capture.calls[c])) continue;
    place[c] = static_cast<std::uint32_t>(kept.calls.size());
    kept.calls.push_back(capture.calls[c]);
  }
  for (CapturedCall& call : kept.calls) {
    if (call.record) call.record = place[*call.record];
  }
  kept.launches.clear();
  kept.collectives.clear();
  for (const CapturedLaunch& launch : capture.launches) {
    if (!keeps_launch(launch)) continue;
    CapturedLaunch& own = kept.launches.emplace_back(launch);
    if (own.call) own.call = place[*own.call];
    if (!own.collective) continue;
    kept.collectives.push_back(capture.collectives[*own.collective]);
    own.collective = static_cast<std::uint32_t>(kept.collectives.size() - 1);
  }
  return kept;
}

}  // namespace rubato
