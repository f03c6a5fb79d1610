#include "tools/options/captured.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/calibration/capture_fit.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/logged_power.hpp"
#include "models/validation/model_errors.hpp"
#include "tools/command_line.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/capture_match.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

void add_captured_clock_options(CommandLine& app, CapturedClockOptions& options) {
  app.add_option("--captured-clock", options.clock,
                 "Clocks of the capture, MEMORY/CORE (default: the power log's, else the GPU's)");
  Option* power =
      app.add_option("--power", options.power, "Power log: nvidia-smi, DCGM, NVML or Zeus");
  app.add_option("--power-gpu", options.log.gpu,
                 "Which GPU of the log: its index, bus id, UUID, name or host")
      ->needs(power);
  app.add_option("--power-period", options.log.period_s,
                 "Distance of samples in s, for logs without times such as dcgmi dmon")
      ->positive()
      ->needs(power);
  app.add_option("--power-zone", options.power_zone_h, "Hours the log's local time is ahead of UTC")
      ->in_range(-12.0, 14.0)
      ->needs(power);
}

ClockedFile clocked_file(const std::string& text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || std::filesystem::exists(text)) return {text, std::nullopt};
  const std::string clock = text.substr(at + 1);
  return {text.substr(0, at), clock.find('/') == std::string::npos ? "auto/" + clock : clock};
}

GpuSpec with_other_captures(const GpuSpec& spec, const Capture& first, const ClockPair& clock,
                            const std::vector<std::string>& also, bool partial) {
  const Trace step = fold(first);
  std::vector<CaptureObservation> observed{
      {.clock = clock, .times = typical_times(step, first), .power = {}}};
  const std::vector<std::uint64_t> launches = launch_counts(step);
  std::vector<bool> everywhere(step.kernels.size(), true);
  for (const std::string& text : also) {
    const ClockedFile file = clocked_file(text);
    if (!file.clock)
      throw UsageError(fmt::format("--also {}: the clock it was captured at is missing", text),
                       {.in = {}, .hint = "write FILE@CORE or FILE@MEMORY/CORE, in MHz"});
    const ClockPair at = captured_clock(spec, file.clock);
    for (const CaptureObservation& other : observed) {
      if (effective_core_mhz(spec, other.clock) == effective_core_mhz(spec, at) &&
          other.clock.mem == at.mem)
        throw UsageError(
            fmt::format("--also {}: there is a capture at this clock already", text),
            {.in = {}, .hint = "a capture at another core clock says what the clock changes"});
    }
    const Capture capture = read_told_capture(file.file, partial);
    observed.push_back({.clock = at, .times = typical_times(step, capture), .power = {}});
    double found_s = 0.0, all_s = 0.0, then_s = 0.0;
    for (std::size_t k = 0; k < step.kernels.size(); ++k) {
      const auto &here = observed.front().times[k], &there = observed.back().times[k];
      const double time_s = here ? static_cast<double>(launches[k]) * here->time_s : 0.0;
      all_s += time_s;
      everywhere[k] = everywhere[k] && here && there;
      if (!here || !there) continue;
      found_s += time_s;
      then_s += static_cast<double>(launches[k]) * there->time_s;
    }
    if (found_s == 0.0)
      throw DataError(
          fmt::format("{}: none of its kernels is one of the first capture", printable(file.file)));
    tell("note: {}: {:.1f} % of the time of kernels found, which takes {} % there\n",
         printable(file.file), 100.0 * found_s / all_s,
         format_signed(100.0 * (then_s / found_s - 1.0), 2));
  }
  Trace common = step;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    if (!everywhere[k]) continue;
    common.kernels[kept] = step.kernels[k];
    for (CaptureObservation& one : observed) one.times[kept] = one.times[k];
    ++kept;
  }
  common.kernels.resize(kept);
  for (CaptureObservation& one : observed) one.times.resize(kept);
  GpuSpec frame = spec;
  drop_reported_errors(frame);
  return fit_captures(frame, common, observed).spec;
}

Capture read_told_capture(const std::string& file, bool partial) {
  Capture capture = import_capture(file, {.partial = partial});
  for (const std::string& line : capture.left_out)
    tell("note: {}: left out: {}\n", printable(with_input_named(file)), printable(line));
  return capture;
}

PowerLog read_told_power_log(const std::filesystem::path& path, const PowerLogOptions& options) {
  PowerLog log = read_power_log(path, options);
  for (const std::string& line : log.left_out)
    tell("note: {}: {}\n", printable(log.file), printable(line));
  return log;
}

std::optional<std::string> captured_clock_label(const CapturedClockOptions& options) {
  if (!options.clock.empty() && !options.power.empty()) {
    throw UsageError("--captured-clock and --power both say the clocks of the capture",
                     {.hint = "give one of them"});
  }
  if (!options.clock.empty()) return options.clock;
  if (options.power.empty()) return std::nullopt;
  auto label = logged_clock(read_told_power_log(options.power, options.log));
  if (!label)
    tell("note: {}: it has no core clock, so the clocks of the capture are not known from it\n",
         printable(options.power));
  tell(
      "note: {}: its watts are not used, since a trace has no times to put them beside: explore "
      "the "
      "capture itself\n",
      printable(options.power));
  return label;
}

CapturedLog::CapturedLog(const CapturedClockOptions& options, const GpuSpec& spec)
    : zone_h_(options.power_zone_h) {
  if (!options.clock.empty()) clock_ = options.clock;
  if (options.power.empty()) return;
  log_ = read_told_power_log(options.power, options.log);
  if (clock_) return;
  clock_ = logged_clock(*log_, &spec);
  if (!clock_)
    tell("note: {}: it has no core clock, so the clocks of the capture are not known from it\n",
         printable(options.power));
}

GpuSpec CapturedLog::with_power(GpuSpec spec, const std::vector<Capture>& captures,
                                const ClockPair& clock) const {
  if (!log_) return spec;
  std::set<std::uint32_t> devices;
  for (const CapturedLaunch& launch : captures.front().launches)
    devices.insert(captures.front().streams[launch.stream].device);
  if (captures.size() > 1 || devices.size() != 1) {
    tell("note: {}: its watts are those of one GPU of several: they are not used\n",
         printable(log_->file));
    return spec;
  }
  try {
    const std::uint32_t device = *devices.begin();
    const PlacedLog placed = placed_log(captures.front(), device, spec.title, *log_, zone_h_);
    tell("note: power log {}\n", text_of(placed.alignment));
    LoggedRun run = with_logged_power(spec, captures.front(), device, clock, *log_, placed);
    for (const std::string& note : run.notes) tell("note: {}\n", note);
    return std::move(run.spec);
  } catch (const DataError& error) {
    tell("note: its watts are not used: {}\n", error.what());
    return spec;
  }
}

void add_step_options(CommandLine& app, StepOptions& options) {
  app.add_option("--step", options.step,
                 "Of a capture only this step: its name or its position from 0");
  app.add_flag("--partial", options.partial, "Leave out what cannot be read, and say so");
}

bool names_capture(const std::string& name_or_path) {
  return std::filesystem::exists(name_or_path) && !is_trace(capture_format(name_or_path));
}

Trace load_own_trace(const std::string& name_or_path, const StepOptions& options) {
  if (!std::filesystem::is_regular_file(name_or_path)) return load_trace(name_or_path);
  // The reader of our own tables says what is wrong with a header of one.
  if (name_or_path.ends_with(".csv") &&
      read_file(name_or_path).find("\"ID\",") == std::string::npos)
    return load_trace(name_or_path);
  return import_trace(name_or_path, {.partial = options.partial});
}

GpuSpec load_gpu_for_trace(const std::string& gpu, const std::string& fallback, const Trace& trace,
                           const std::string& file) {
  if (!trace.captured) return load_gpu(gpu.empty() ? fallback : gpu);
  const std::array device{trace.captured->device};
  GpuSpec spec = load_gpu_for_devices(gpu, device, trace.provenance, file, OfAnotherGpu::guessed);
  if (match_device(spec, trace.captured->device) == DeviceMatch::other) return spec;
  const ClockPair clock = captured_clock(spec, trace.captured->clock);
  const ClockGrid grid(spec, {clock});
  const std::string& label = grid.label(*grid.find(clock));
  if (!trace.captured->clock) {
    tell(
        "note: the clocks of the capture are not known: the GPU's default, {}, is assumed; "
        "--captured-clock or --power say otherwise\n",
        label);
  } else {
    tell("note: captured at {}{}\n", label,
         label == *trace.captured->clock
             ? ""
             : ", the spec's nearest to " + printable(*trace.captured->clock));
  }
  return spec;
}

}  // namespace rubato
