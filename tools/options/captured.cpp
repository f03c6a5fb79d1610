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
#include "models/validation/power_windows.hpp"
#include "tools/command_line.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/capture_match.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"
#include "traces/transformer/model_shape.hpp"

namespace rubato {

void add_captured_clock_options(CommandLine& app, CapturedClockOptions& options) {
  app.add_option("--captured-clock CLOCK", options.clock,
                 "Clocks of the capture, MEMORY/CORE, MHz [from the power log, else the default]");
  Option* power = app.add_option("--power LOG", options.power,
                                 "Power log of the captured run (nvidia-smi, DCGM, NVML, Zeus)");
  app.add_option("--power-gpu", options.log.gpu,
                 "GPU of the log: index, bus id, UUID, name or host")
      ->needs(power);
  app.add_option("--power-period S", options.log.period_s,
                 "Time between samples, s, for logs without times (dcgmi dmon)")
      ->positive()
      ->needs(power);
  app.add_option("--power-zone H", options.power_zone_h,
                 "Hours the log's local time is ahead of UTC")
      ->in_range(-12.0, 14.0)
      ->needs(power);
  app.rare({"--power-gpu", "--power-period", "--power-zone"});
}

ClockedFile clocked_file(const std::string& text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || std::filesystem::exists(text)) return {text, std::nullopt};
  const std::string clock = text.substr(at + 1);
  return {text.substr(0, at), clock.find('/') == std::string::npos ? "auto/" + clock : clock};
}

std::vector<PowerWindow> told_windows(const PowerLog& log, std::optional<double> zone_h,
                                      const GpuSpec& spec, const Trace& step,
                                      const Capture& capture,
                                      std::span<const std::optional<TypicalTime>> times) {
  constexpr std::uint32_t device = 0;
  const PlacedLog placed = placed_log(capture, device, spec.title, log, zone_h);
  tell("note: {}: {}\n", printable(log.file), text_of(placed.alignment));
  if (const auto beyond = beyond_limit(log, spec)) tell("note: {}\n", *beyond);
  return power_windows(with_lost_launches(step, times, capture), device,
                       same_kernels(step, capture), step.kernels.size(), log, placed.sensor,
                       placed.alignment);
}

Capture read_told_capture(const std::string& file, const ImportOptions& options) {
  Capture capture = import_capture(file, options);
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
    tell(
        "note: {}: the log has no core clock, so it cannot say at which clocks the run was "
        "captured\n",
        printable(options.power));
  tell(
      "note: {}: its power is not used, since a trace has no times to compare it with: explore the "
      "capture itself\n",
      printable(options.power));
  return label;
}

CapturedLog::CapturedLog(const CapturedClockOptions& options, const GpuSpec& spec)
    : options_(options.log), zone_h_(options.power_zone_h) {
  if (!options.clock.empty()) clock_ = options.clock;
  if (options.power.empty()) return;
  log_ = read_told_power_log(options.power, options.log);
  if (clock_) return;
  clock_ = logged_clock(*log_, &spec);
  if (!clock_)
    tell(
        "note: {}: the log has no core clock, so it cannot say at which clocks the run was "
        "captured\n",
        printable(options.power));
}

GpuSpec CapturedLog::with_power(GpuSpec spec, const std::vector<Capture>& captures,
                                const ClockPair& clock) const {
  if (!log_) return spec;
  if (const auto beyond = beyond_limit(*log_, spec)) {
    tell("note: {} Its watts are not used\n", *beyond);
    return spec;
  }
  std::set<std::uint32_t> devices;
  for (const CapturedLaunch& launch : captures.front().launches)
    devices.insert(captures.front().streams[launch.stream].device);
  if (captures.size() > 1 || devices.size() != 1) {
    tell("note: {}: its power is that of one GPU of several, and is not used\n",
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

namespace {

// "slow.json.gz@1110,power=slow.csv"
struct OtherCapture {
  ClockedFile file;
  std::optional<PowerLog> log;
};

OtherCapture other_capture(const std::string& text, const PowerLogOptions& options,
                           const GpuSpec& spec) {
  constexpr std::string_view power = ",power=";
  const std::size_t at = text.rfind(power);
  OtherCapture other{clocked_file(text.substr(0, at)), {}};
  if (at != std::string::npos)
    other.log = read_told_power_log(text.substr(at + power.size()), options);
  if (!other.file.clock && other.log) other.file.clock = logged_clock(*other.log, &spec);
  if (!other.file.clock)
    throw UsageError(fmt::format("--also {}: the clock it was captured at is missing", text),
                     {.in = {}, .hint = "write FILE@CORE or FILE@MEMORY/CORE, in MHz"});
  return other;
}

// What observations of a step have in common: kernels that were found in each of them, and readings
// of times in which only these ran.
Trace common_step(Trace step, std::vector<CaptureObservation>& observed) {
  constexpr double little = 0.02;  // of a window
  std::vector<std::size_t> kept;
  for (std::size_t k = 0; k < step.kernels.size(); ++k) {
    if (std::ranges::all_of(observed, [&](const auto& one) { return one.times[k].has_value(); }))
      kept.push_back(k);
  }
  const auto keep = [&](auto& values) {
    for (std::size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
    values.resize(kept.size());
  };
  keep(step.kernels);
  for (CaptureObservation& one : observed) {
    keep(one.times);
    std::erase_if(one.power, [&](PowerWindow& window) {
      const double all = sum(window.share);
      keep(window.share);
      return all - sum(window.share) > little;
    });
  }
  return step;
}

}  // namespace

GpuSpec CapturedLog::with_other_captures(const GpuSpec& spec, const FirstCapture& first,
                                         const ClockPair& clock,
                                         const std::vector<std::string>& also,
                                         const ImportOptions& options) const {
  const Trace step = fold(first.planned);
  std::vector<CaptureObservation> observed{
      {.clock = clock, .times = typical_times(step, first.planned), .power = {}}};
  const std::vector<std::uint64_t> launches = launch_counts(step);
  GpuSpec frame = spec;
  for (const std::string& text : also) {
    const OtherCapture other = other_capture(text, options_, spec);
    const ClockPair at = captured_clock(spec, other.file.clock);
    for (const CaptureObservation& known : observed) {
      if (effective_core_mhz(spec, known.clock) == effective_core_mhz(spec, at) &&
          known.clock.mem == at.mem)
        throw UsageError(
            fmt::format("--also {}: there is a capture at this clock already", text),
            {.in = {}, .hint = "a capture at another core clock says what the clock changes"});
    }
    const Capture capture = read_told_capture(other.file.file, options);
    CaptureObservation& seen = observed.emplace_back(
        CaptureObservation{.clock = at, .times = typical_times(step, capture), .power = {}});
    double found_s = 0.0, all_s = 0.0, then_s = 0.0;
    for (std::size_t k = 0; k < step.kernels.size(); ++k) {
      const auto &here = observed.front().times[k], &there = seen.times[k];
      const double time_s = here ? static_cast<double>(launches[k]) * here->time_s : 0.0;
      all_s += time_s;
      if (!here || !there) continue;
      found_s += time_s;
      then_s += static_cast<double>(launches[k]) * there->time_s;
    }
    if (found_s == 0.0)
      throw DataError(fmt::format("{}: none of its kernels is one of the first capture",
                                  printable(other.file.file)));
    tell("note: {}: has {:.1f} % of the kernels by time; they take {} % there\n",
         printable(other.file.file), 100.0 * found_s / all_s,
         format_signed(100.0 * (then_s / found_s - 1.0), 2));
    if (!other.log) continue;
    if (!log_)
      throw UsageError(fmt::format("--also {}: the first capture has no power log", text),
                       {.in = {}, .hint = "give that of the first one too, with --power"});
    if (beyond_limit(*log_, spec) || beyond_limit(*other.log, spec)) {
      tell("note: --also {}: watts beyond the board's limit are not used\n", printable(text));
      continue;
    }
    seen.power = told_windows(*other.log, zone_h_, spec, step, capture, seen.times);
    if (!observed.front().power.empty()) continue;
    // Both logs are read as one: what the first said by itself is forgotten.
    frame.logged.clear();
    observed.front().power =
        told_windows(*log_, zone_h_, spec, step, first.recorded, observed.front().times);
  }
  drop_reported_errors(frame);
  const Trace common = common_step(step, observed);
  return fit_captures(frame, common, observed).spec;
}

Option* add_phase_option(CommandLine& app, ImportOptions& options) {
  return app
      .add_option("--phase", options.phase,
                  "Of a server's capture only the steps of one phase: prefill or decode")
      ->one_of({"prefill", "decode"});
}

void add_step_options(CommandLine& app, StepOptions& options) {
  app.add_option("--step", options.step,
                 "Use only this step of a capture: its name, or its number from 0");
  add_phase_option(app, options.import);
  app.add_flag("--partial", options.import.partial, "Skip what cannot be read, and list it");
}

bool names_capture(const std::string& name_or_path) {
  return std::filesystem::exists(name_or_path) && !is_trace(capture_format(name_or_path));
}

Trace load_own_trace(const std::string& name_or_path, const StepOptions& options) {
  if (!std::filesystem::is_regular_file(name_or_path)) {
    if (std::ranges::count(shipped_traces(), name_or_path) == 0 &&
        std::ranges::count(model_shape_names(), name_or_path) > 0)
      throw UsageError(fmt::format("there is no trace '{}'", name_or_path),
                       {.in = {},
                        .hint = fmt::format(
                            "it is a model: 'rubato trace gen {0} -o {0}.json' makes a trace of it",
                            name_or_path)});
    return load_trace(name_or_path);
  }
  // The reader of our own tables says what is wrong with a header of one.
  if (name_or_path.ends_with(".csv") &&
      read_file(name_or_path).find("\"ID\",") == std::string::npos)
    return load_trace(name_or_path);
  return import_trace(name_or_path, options.import);
}

GpuSpec load_gpu_for_trace(const std::string& gpu, const Trace& trace, const std::string& file) {
  if (!trace.captured) return load_gpu(gpu.empty() ? usual_gpu() : gpu);
  const std::array device{trace.captured->device};
  GpuSpec spec = load_gpu_for_devices(gpu, device, trace.provenance, file, OfAnotherGpu::guessed);
  if (match_device(spec, trace.captured->device) == DeviceMatch::other) return spec;
  const ClockPair clock = captured_clock(spec, trace.captured->clock);
  const ClockGrid grid(spec, {clock});
  const std::string& label = grid.label(*grid.find(clock));
  if (!trace.captured->clock) {
    tell(
        "note: the capture does not record its clocks: the default of the GPU, {}, is assumed "
        "(--captured-clock, --power)\n",
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
