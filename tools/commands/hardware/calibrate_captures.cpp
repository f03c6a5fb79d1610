#include "tools/commands/hardware/calibrate_captures.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/calibration/capture_fit.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"
#include "models/validation/logged_power.hpp"
#include "models/validation/model_errors.hpp"
#include "tools/commands/hardware/calibrate_tables.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/gpu.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/capture_stats.hpp"

namespace rubato {

namespace {

// A capture, the clock behind its last @, and its power log.
struct Recorded {
  std::string file;
  std::optional<std::string> clock;
  Capture capture;
  std::optional<PowerLog> log;
};

std::vector<Recorded> read_all(const CaptureCalibration& asked) {
  if (!asked.power.empty() && asked.power.size() != asked.captures.size()) {
    throw UsageError(
        fmt::format("there are {} power logs for {} captures; give one for each, in "
                    "the same order",
                    asked.power.size(), asked.captures.size()));
  }
  std::vector<Recorded> all;
  for (std::size_t i = 0; i < asked.captures.size(); ++i) {
    const auto [file, clock] = clocked_file(asked.captures[i]);
    Recorded& recorded =
        all.emplace_back(Recorded{file, clock, read_told_capture(file, asked.import), {}});
    if (asked.power.empty()) continue;
    recorded.log = read_told_power_log(asked.power[i], asked.log);
  }
  return all;
}

GpuSpec frame_of(const CaptureCalibration& asked, const std::vector<Recorded>& all) {
  std::vector<std::string> devices;
  for (const Recorded& recorded : all) {
    for (const CaptureDevice& device : recorded.capture.devices) devices.push_back(device.name);
  }
  return load_gpu_for_devices(asked.gpu, devices, all.front().capture.provenance, all.front().file);
}

OutputTable captures_table(const std::vector<Recorded>& all, const GpuSpec& spec, const Trace& step,
                           const std::vector<CaptureObservation>& observed) {
  OutputTable table({{"capture"},
                     {"clock", "clock mem/core"},
                     {"kernels", "kernels found"},
                     {"of_kernels", "of"},
                     {"step_ms", "time of all, ms", 3},
                     {"power_samples", "power samples"}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ClockGrid grid(spec, {observed[i].clock});
    const std::vector<std::uint64_t> counts = launch_counts(step);
    std::int64_t found = 0;
    double time_s = 0.0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const auto& time = observed[i].times[k];
      if (!time) continue;
      ++found;
      time_s += static_cast<double>(counts[k]) * time->time_s;
    }
    table.add_row({all[i].file, grid.label(*grid.find(observed[i].clock)), found,
                   static_cast<std::int64_t>(counts.size()), 1e3 * time_s,
                   static_cast<std::int64_t>(observed[i].power.size())});
  }
  return table;
}

OutputTable classes_table(const CaptureFit& fit) {
  OutputTable table({{"class"},
                     {"core_energy_factor", "core energy over expected", 3},
                     {"relative_error", "+-1 s", 3},
                     {"measured", "said by the logs"}});
  for (const ClassEnergy& energy : fit.classes)
    table.add_row(
        {std::string(name_of(energy.kind)), energy.factor, energy.relative_error, energy.measured});
  return table;
}

bool has_powers(const std::vector<CaptureObservation>& observed) {
  return std::ranges::any_of(
      observed, [](const CaptureObservation& capture) { return !capture.power.empty(); });
}

std::string capture_fit_answer(const CaptureFit& fit, bool powers) {
  return fmt::format("Mean absolute error on what it was fitted to: time {} %",
                     format_fixed(percent * fit.time_error, 2)) +
         (powers
              ? fmt::format(", power of the logs {} %.", format_fixed(percent * fit.power_error, 2))
              : ". No power log: energies are guesses (+-50 %).");
}

std::string notes_of(const GpuSpec& frame, const CaptureFit& fit,
                     const std::vector<CaptureObservation>& observed, const std::string& file,
                     const std::string& out) {
  std::set<double> core;
  std::set<std::uint32_t> mem;
  for (const CaptureObservation& capture : observed) {
    core.insert(effective_core_mhz(fit.spec, capture.clock));
    mem.insert(capture.clock.mem.value);
  }
  std::string text;
  if (core.size() < 2)
    text += "One core clock only: what follows the core clock rests on work and class.\n";
  if (mem.size() < 2 && fit.spec.mem_states.size() > 1)
    text += "One memory clock only: what follows the memory clock rests on work and class.\n";
  if (has_powers(observed)) {
    text += fmt::format("The logs shift the base power by {} W.\n",
                        format_signed(fit.base_power_offset_w, 1));
  }
  text += frame_note(frame) + '\n';
  return text + fmt::format("next: rubato explore {} --gpu {}\n", printable(file), printable(out));
}

}  // namespace

ExitStatus calibrate_captures(const CaptureCalibration& asked) {
  std::vector<Recorded> all = read_all(asked);
  GpuSpec frame = frame_of(asked, all);
  drop_reported_errors(frame);
  for (Recorded& recorded : all) {
    if (recorded.log && !recorded.clock) recorded.clock = logged_clock(*recorded.log, &frame);
  }
  Trace step = fold(all.front().capture);
  if (std::ranges::none_of(step.kernels,
                           [](const Kernel& k) { return k.measured_time_s.has_value(); }))
    throw DataError(fmt::format("{}: no launch has a time", printable(all.front().file)));
  std::vector<CaptureObservation> observed;
  for (const Recorded& recorded : all) {
    observed.push_back({.clock = captured_clock(frame, recorded.clock),
                        .times = typical_times(step, recorded.capture),
                        .power = {}});
    if (!recorded.clock) {
      tell("note: {}: its clocks are not known: the GPU's default is assumed\n",
           printable(recorded.file));
    }
    if (recorded.log)
      observed.back().power = told_windows(*recorded.log, asked.power_zone_h, frame, step,
                                           recorded.capture, observed.back().times);
  }
  CaptureFit fit = fit_captures(frame, step, observed);
  if (!asked.name.empty()) fit.spec.name = asked.name;
  if (!asked.title.empty()) fit.spec.title = asked.title;
  write_output(asked.out, to_json(fit.spec));
  if (asked.out == "-") return ExitStatus::done;
  const OutputTable captures = captures_table(all, frame, step, observed),
                    classes = classes_table(fit);
  if (asked.format != OutputFormat::table) {
    print(asked.format == OutputFormat::json
              ? render_json_object({{"captures", &captures}, {"classes", &classes}})
              : captures.render(asked.format));
    return ExitStatus::done;
  }
  print_notes(answer_text(
      fmt::format("{}, its kernels fitted to {} captures", printable(fit.spec.title), all.size()),
      capture_fit_answer(fit, has_powers(observed))));
  print_tables({{"captures", &captures}, {"classes", &classes}}, asked.format);
  print_notes(notes_of(frame, fit, observed, all.front().file, asked.out));
  return ExitStatus::done;
}

}  // namespace rubato
