#include "models/validation/power_windows.hpp"
#include "traces/capture.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace rubato {

namespace {

// How many launches of a kernel run, over time.
StepCurve running_curve(const std::map<double, double>& changes) {
  std::vector<double> at_s, value;
  double running = 0.0;
  for (const auto& [time_s, change] : changes) {
    running += change;
    at_s.push_back(time_s);
    value.push_back(running);
  }
  if (!value.empty()) value.back() = 0.0;
  return {std::move(at_s), std::move(value)};
}

}  // namespace

std::vector<PowerWindow> power_windows(const Capture& capture, std::uint32_t device,
                                       std::span<const std::optional<KernelId>> kernel_of,
                                       std::size_t kernels, const PowerLog& log,
                                       const SensorModel& sensor, const Alignment& alignment) {
  const std::int64_t origin_ns =
      std::ranges::min_element(capture.launches, {}, &CapturedLaunch::start_ns)->start_ns;
  std::vector<std::map<double, double>> changes(kernels);
  double end_s = 0.0;
  for (const CapturedLaunch& launch : capture.launches) {
    if (capture.streams[launch.stream].device != device || launch.duration_ns <= 0) continue;
    const double from_s = s_per_ns * static_cast<double>(launch.start_ns - origin_ns);
    const double to_s = s_per_ns * static_cast<double>(launch.end_ns() - origin_ns);
    end_s = std::max(end_s, to_s);
    const auto& kernel = kernel_of[index(launch.kernel)];
    if (!kernel) continue;
    changes[index(*kernel)][from_s] += 1.0;
    changes[index(*kernel)][to_s] -= 1.0;
  }
  std::vector<std::optional<StepCurve>> curves;
  for (const auto& of_kernel : changes)
    curves.push_back(of_kernel.empty() ? std::nullopt : std::optional(running_curve(of_kernel)));
  // Between steps a GPU may rest as it does in none.
  const bool in_steps = capture.step_source == StepSource::annotation && !capture.steps.empty();
  const auto in_a_step = [&](double at_s) {
    const std::int64_t at_ns = origin_ns + static_cast<std::int64_t>(at_s / s_per_ns);
    return std::ranges::any_of(capture.steps, [&](const CapturedStep& step) {
      return step.start_ns <= at_ns && at_ns <= step.end_ns;
    });
  };
  std::vector<PowerWindow> windows;
  double last_cycle = -1.0;
  for (const PowerSample& sample : log.samples) {
    const double at_s = sample.time_s + alignment.offset_s;
    if (at_s < sensor.window_s + sensor.cycle_s || at_s > end_s) continue;
    // A sensor that works in cycles repeats its reading: count it once.
    const double cycle = sensor.cycle_s > 0.0 ? std::floor(at_s / sensor.cycle_s) : -1.0;
    if (sensor.cycle_s > 0.0 && cycle == last_cycle) continue;
    last_cycle = cycle;
    const double read_s = sensor.cycle_s > 0.0 ? cycle * sensor.cycle_s : at_s;
    if (in_steps && !(in_a_step(read_s) && in_a_step(read_s - sensor.window_s))) continue;
    PowerWindow& window = windows.emplace_back();
    window.power_w = sample.power_w;
    for (const auto& curve : curves)
      window.share.push_back(curve ? reading(*curve, sensor, at_s) : 0.0);
  }
  return windows;
}

}  // namespace rubato
