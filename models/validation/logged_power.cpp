#include "models/validation/logged_power.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "common/text.hpp"
#include "models/calibration/power_scales.hpp"
#include "models/kernel/anchor.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/power_windows.hpp"

namespace rubato {

namespace {

constexpr double at_limit = 0.93;  // of the power that the limit settles at
constexpr double lowered = 0.985;  // of the highest core clock of a log
constexpr double least_time_s = 1e-9;

std::int64_t first_start_ns(const Capture& capture) {
  return std::ranges::min_element(capture.launches, {}, &CapturedLaunch::start_ns)->start_ns;
}

double limit_w(const GpuSpec& spec) {
  return spec.power_limit.limit_w * spec.power_limit.regulated_frac;
}

// The highest readings, but for a few odd ones.
double high_w(const PowerLog& log) {
  constexpr double share = 0.95;
  std::vector<double> power_w;
  for (const PowerSample& sample : log.samples) power_w.push_back(sample.power_w);
  const auto at = power_w.begin() +
                  static_cast<std::ptrdiff_t>(share * static_cast<double>(power_w.size() - 1));
  std::ranges::nth_element(power_w, at);
  return *at;
}

// The kernels of a capture as models of graphs have them: each takes the mean of its launches.
struct Kernels {
  std::vector<WindowedKernel> kernels;
  std::vector<double> time_s;  // of all launches on the device

  Kernels(const GpuSpec& spec, const Capture& capture, std::uint32_t device,
          const ClockPair& clock) {
    std::vector<double> all_s(capture.kernels.size(), 0.0), launches(all_s);
    time_s.resize(all_s.size(), 0.0);
    for (const CapturedLaunch& launch : capture.launches) {
      const double taken_s = s_per_ns * static_cast<double>(launch.duration_ns);
      all_s[index(launch.kernel)] += taken_s;
      launches[index(launch.kernel)] += 1.0;
      if (capture.streams[launch.stream].device == device) time_s[index(launch.kernel)] += taken_s;
    }
    for (std::size_t k = 0; k < all_s.size(); ++k) {
      const double mean_s = std::max(all_s[k] / std::max(launches[k], 1.0), least_time_s);
      kernels.push_back(
          {capture.kernels[k].kind,
           anchored(spec, capture.kernels[k], {clock, mean_s, spec.power_limit.limit_w})
               .coefficients});
    }
  }

  // Of the time in which kernels run: the core clock that the power limit lets be.
  [[nodiscard]] double mean_mhz(const GpuSpec& spec, const ClockPair& clock) const {
    double sum = 0.0, all_s = 0.0;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      sum +=
          time_s[k] *
          operating_point(spec, kernels[k].coefficients, clock, spec.power_limit.limit_w).core_mhz;
      all_s += time_s[k];
    }
    return all_s > 0.0 ? sum / all_s : 0.0;
  }
};

// The middle of the readings of a GPU at work.
double usual_w(const PowerLog& log) {
  const auto [least, most] = std::ranges::minmax(
      log.samples, {}, [](const PowerSample& sample) { return sample.power_w; });
  std::vector<double> busy_w;
  for (const PowerSample& sample : log.samples) {
    if (sample.power_w >= 0.5 * (least.power_w + most.power_w)) busy_w.push_back(sample.power_w);
  }
  return median(std::move(busy_w));
}

struct SeenClock {
  double mean_mhz = 0.0, error_mhz = 0.0;
};

// The core clock while kernels run, as the samples have it.
std::optional<SeenClock> seen_clock(const Capture& capture, std::uint32_t device,
                                    const PowerLog& log, const PlacedLog& placed) {
  constexpr double around_s = 5e-3, busy = 0.99;
  constexpr std::size_t least_seen = 8;
  const StepCurve running = busy_curve(capture, device, first_start_ns(capture));
  std::vector<double> mhz;
  for (const PowerSample& sample : log.samples) {
    const double at_s = sample.time_s + placed.alignment.offset_s;
    if (sample.core_mhz && running.mean(at_s - around_s, at_s + around_s) > busy)
      mhz.push_back(*sample.core_mhz);
  }
  if (mhz.size() < least_seen) return std::nullopt;
  const auto n = static_cast<double>(mhz.size());
  const double mean = sum(mhz) / n;
  double squares = 0.0;
  for (const double one : mhz) squares += (one - mean) * (one - mean);
  return SeenClock{mean, std::sqrt(squares / n / n)};
}

void set_factors(GpuSpec& spec, const PowerScales& scales, double common) {
  spec.logged.clear();
  for (std::size_t c = 0; c < scales.factor.size(); ++c) {
    spec.logged.push_back({.kind = static_cast<KernelClass>(c),
                           .core_factor = common * scales.factor[c],
                           .relative_error = scales.sigma[c] / scales.factor[c]});
  }
}

}  // namespace

PlacedLog placed_log(const Capture& capture, std::uint32_t device, std::string_view gpu_title,
                     const PowerLog& log, std::optional<double> zone_hours) {
  const std::string& recorded = capture.devices[device].name;
  const std::int64_t origin_ns = first_start_ns(capture);
  const SensorModel sensor = sensor_of(recorded.empty() ? gpu_title : recorded, log);
  std::optional<double> epoch_s;
  if (capture.epoch_ns) epoch_s = s_per_ns * static_cast<double>(*capture.epoch_ns + origin_ns);
  return {sensor, align(busy_curve(capture, device, origin_ns), log, sensor, epoch_s, zone_hours)};
}

std::optional<std::string> logged_clock(const PowerLog& log, const GpuSpec* spec) {
  if (log.samples.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(
      log.samples, {}, [](const PowerSample& sample) { return sample.power_w; });
  const double busy_w = 0.5 * (least.power_w + most.power_w);
  std::vector<double> core, mem;
  double highest_mhz = 0.0;
  for (const PowerSample& sample : log.samples) {
    highest_mhz = std::max(highest_mhz, sample.core_mhz.value_or(0.0));
    if (sample.power_w < busy_w) continue;
    if (sample.core_mhz) core.push_back(*sample.core_mhz);
    if (sample.mem_mhz) mem.push_back(*sample.mem_mhz);
  }
  if (core.empty()) return std::nullopt;
  const double usual_mhz = median(std::move(core));
  const bool limited = spec != nullptr && usual_mhz < lowered * highest_mhz &&
                       high_w(log) > at_limit * limit_w(*spec);
  return fmt::format("{}/{}", mem.empty() ? "auto" : format_number(median(std::move(mem))),
                     format_number(limited ? highest_mhz : usual_mhz));
}

std::optional<std::string> beyond_limit(const PowerLog& log, const GpuSpec& spec) {
  // The limit holds for a mean: an H200 at 700 W read up to 887 W in single windows of 25 ms, and
  // 653 to 743 W in the medians of three logs (driver 580.159, 2026-11-27).
  constexpr double overshoot_of_mean = 1.03, overshoot_of_instant = 1.1;
  const double read_w = log.instantaneous ? usual_w(log) : high_w(log);
  const double overshoot = log.instantaneous ? overshoot_of_instant : overshoot_of_mean;
  if (read_w <= overshoot * spec.power_limit.limit_w) return std::nullopt;
  return fmt::format(
      "{}: readings of {:.0f} W, beyond the limit of {:.0f} W that {} has: is it this GPU, and "
      "this "
      "limit?",
      printable(log.file), read_w, spec.power_limit.limit_w, spec.name);
}

LoggedRun with_logged_power(const GpuSpec& spec, const Capture& capture, std::uint32_t device,
                            const ClockPair& clock, const PowerLog& log, const PlacedLog& placed) {
  LoggedRun run{spec, {}};
  if (const auto beyond = beyond_limit(log, spec)) run.notes.push_back(*beyond);
  std::vector<std::optional<KernelId>> own;
  for (std::size_t k = 0; k < capture.kernels.size(); ++k) own.emplace_back(id_at<KernelId>(k));
  const std::vector<PowerWindow> windows = power_windows(
      capture, device, own, capture.kernels.size(), log, placed.sensor, placed.alignment);
  if (windows.empty()) {
    run.notes.push_back(fmt::format("{}: no reading lies inside a step: its power is not used",
                                    printable(log.file)));
    return run;
  }
  const LoggedWindows read{clock, windows};
  run.spec.logged.clear();
  PowerScales scales = unscaled_powers();
  // Where the power limit binds, times and so powers depend on the factors.
  for (int round = 0; round < 3; ++round) {
    const Kernels kernels(run.spec, capture, device, clock);
    PowerScales found = scale_powers(run.spec, kernels.kernels, {&read, 1});
    run.spec = with_waiting_power(std::move(run.spec), found, clock);
    for (std::size_t c = 0; c < found.factor.size(); ++c) {
      found.factor[c] *= scales.factor[c];
      found.sigma[c] *= found.factor[c];
    }
    scales = std::move(found);
    set_factors(run.spec, scales, 1.0);
  }
  run.spec.sources["logged_power"] =
      fmt::format("{}, {} windows inside steps", printable(log.file), windows.size());
  run.notes.push_back(fmt::format(
      "{}: energies are scaled to {} power readings within steps; the GPU model alone is off by "
      "{:.1f} % on average",
      printable(log.file), windows.size(), percent * scales.mean_error));

  // At the limit power says little of a kernel, but its clock does.
  const std::optional<SeenClock> seen = seen_clock(capture, device, log, placed);
  if (!seen) return run;
  const auto off_mhz = [&](double common) {
    set_factors(run.spec, scales, common);
    return Kernels(run.spec, capture, device, clock).mean_mhz(run.spec, clock) - seen->mean_mhz;
  };
  constexpr double little = 0.003, errors = 2.0;
  const double off = off_mhz(1.0);
  // Clocks that are low without the watts of the limit were lowered by something else.
  const bool other_reason = off > 0.0 && high_w(log) < at_limit * limit_w(spec);
  if (other_reason || std::abs(off) < std::max(errors * seen->error_mhz, little * seen->mean_mhz))
    return run;
  double low = std::log(0.25), high = std::log(4.0);
  for (int i = 0; i < 30; ++i) {
    const double middle = 0.5 * (low + high);
    (off_mhz(std::exp(middle)) > 0.0 ? low : high) = middle;
  }
  const double left_mhz = off_mhz(std::exp(0.5 * (low + high)));
  run.notes.push_back(
      fmt::format("{}: the core clock was {:.0f} MHz while kernels ran, which the power limit "
                  "explains{}",
                  printable(log.file), seen->mean_mhz,
                  std::abs(left_mhz) > little * seen->mean_mhz ? " in part" : ""));
  return run;
}

}  // namespace rubato
