#include "tools/options/captured.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/statistics.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"
#include "tools/command_line.hpp"
#include "tools/options/gpu.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

Option* add_captured_clock_options(CommandLine& app, CapturedClockOptions& options) {
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
  return power;
}

PowerLog read_told_power_log(const std::filesystem::path& path, const PowerLogOptions& options) {
  PowerLog log = read_power_log(path, options);
  for (const std::string& line : log.left_out)
    tell("note: {}: {}\n", printable(log.file), printable(line));
  return log;
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
  if (core.empty()) return std::nullopt;
  return fmt::format("{}/{}", mem.empty() ? "auto" : format_number(median(std::move(mem))),
                     format_number(median(std::move(core))));
}

std::optional<std::string> captured_clock_label(const CapturedClockOptions& options) {
  if (!options.clock.empty() && !options.power.empty()) {
    throw UsageError("--captured-clock and --power both say the clocks of the capture",
                     {.hint = "give one of them; rubato replay compares with the log's power"});
  }
  if (!options.clock.empty()) return options.clock;
  if (options.power.empty()) return std::nullopt;
  auto label = logged_clock(read_told_power_log(options.power, options.log));
  if (!label)
    tell("note: {}: it has no core clock, so the clocks of the capture are not known from it\n",
         printable(options.power));
  return label;
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
