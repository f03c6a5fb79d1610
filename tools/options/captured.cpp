#include "tools/options/captured.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"
#include "tools/command_line.hpp"
#include "tools/options/gpu.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Launches and GPU time of a trace.
std::pair<std::uint64_t, double> sums_of(const Trace& trace) {
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  std::uint64_t launches = 0;
  double time_s = 0.0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    launches += counts[k];
    time_s += static_cast<double>(counts[k]) * trace.kernels[k].measured_time_s.value_or(0.0);
  }
  return {launches, time_s};
}

void say_what_was_taken(const Capture& capture, CaptureFormat kind, const FoldOptions& fold,
                        const Trace& trace) {
  const StepSums all = step_sums(capture, fold);
  const auto [launches, time_s] = sums_of(trace);
  const double all_s = 1e-9 * static_cast<double>(all.time_ns);
  fmt::print(stderr, "note: imported {} ({}): {}\n", printable(capture.name), name_of(kind),
             printable(trace.provenance.options));
  fmt::print(stderr,
             "note: taken: one of {} streams, {} of {} launches, {:.3f} of {:.3f} ms of GPU time "
             "({:.1f} %); other streams, gaps and the host are left out\n",
             all.streams, launches, all.launches, 1e3 * time_s, 1e3 * all_s,
             all_s > 0.0 ? 100.0 * time_s / all_s : 0.0);
  for (const std::string& line : capture.left_out)
    fmt::print(stderr, "note: left out: {}\n", printable(line));
}

}  // namespace

void add_captured_clock_options(CommandLine& app, CapturedClockOptions& options) {
  app.add_option("--captured-clock", options.clock,
                 "Clocks of the capture, MEM/CORE (default: the power log's, else the GPU's)");
  app.add_option("--power", options.power, "Power log: nvidia-smi, DCGM, NVML or Zeus");
  app.add_option("--power-gpu", options.log.gpu, "Index of the GPU in the log");
  app.add_option("--power-period", options.log.period_s, "Distance of samples in s, for dcgmi dmon")
      ->positive();
}

std::optional<std::string> logged_clock(const PowerLog& log) {
  if (log.samples.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(
      log.samples, {}, [](const PowerSample& sample) { return sample.power_w; });
  const double busy_w = 0.5 * (least.power_w + most.power_w);
  std::vector<double> core, mem;
  for (const PowerSample& sample : log.samples) {
    if (sample.power_w < busy_w) continue;
    if (sample.core_mhz) core.push_back(*sample.core_mhz);
    if (sample.mem_mhz) mem.push_back(*sample.mem_mhz);
  }
  const auto core_mhz = median(std::move(core)), mem_mhz = median(std::move(mem));
  if (!core_mhz) return std::nullopt;
  return fmt::format("{}/{}", mem_mhz ? format_number(*mem_mhz) : "auto", format_number(*core_mhz));
}

std::optional<std::string> captured_clock_label(const CapturedClockOptions& options) {
  if (!options.clock.empty()) return options.clock;
  if (options.power.empty()) return std::nullopt;
  return logged_clock(read_power_log(options.power, options.log));
}

void add_step_options(CommandLine& app, StepOptions& options) {
  app.add_option("--step", options.fold.step, "Which step, from 0 [the one with most launches]");
  app.add_option("--device", options.fold.device, "Which GPU [the one with most launches]");
  app.add_flag("--partial", options.partial, "Leave out what cannot be read, and say so");
}

Trace load_step(const std::string& name_or_path, const StepOptions& options) {
  if (!std::filesystem::is_regular_file(name_or_path)) return load_trace(name_or_path);
  // A table of ours with a wrong header is told so by its own reader.
  if (name_or_path.ends_with(".csv") &&
      read_file(name_or_path).find("\"ID\",") == std::string::npos)
    return load_trace(name_or_path);
  const CaptureFormat kind = capture_format(name_or_path);
  const ImportOptions import{.partial = options.partial};
  if (is_trace(kind)) return import_trace(name_or_path, import);
  const Capture capture = import_capture(name_or_path, import);
  Trace trace = fold(capture, options.fold);
  say_what_was_taken(capture, kind, options.fold, trace);
  return trace;
}

GpuSpec load_gpu_for_trace(const std::string& gpu, const std::string& fallback, const Trace& trace,
                           const std::string& file) {
  if (!trace.captured) return load_gpu(gpu.empty() ? fallback : gpu);
  const std::array device{trace.captured->device};
  GpuSpec spec =
      gpu.empty() ? load_gpu_of_devices(device, file) : load_gpu_for_devices(gpu, device, file);
  if (match_device(spec, trace.captured->device) == DeviceMatch::other) return spec;
  const ClockPair clock = captured_clock(spec, trace.captured->clock);
  const ClockGrid grid(spec, {clock});
  const std::string& label = grid.label(*grid.find(clock));
  if (!trace.captured->clock) {
    fmt::print(stderr,
               "note: the clocks of the capture are not known: the GPU's default, {}, is assumed; "
               "--captured-clock or --power say otherwise\n",
               label);
  } else {
    fmt::print(stderr, "note: captured at {}{}\n", label,
               label == *trace.captured->clock
                   ? ""
                   : ", the spec's nearest to " + printable(*trace.captured->clock));
  }
  return spec;
}

}  // namespace rubato
