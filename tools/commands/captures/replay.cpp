// rubato replay: a captured run against the model, and under other clocks.

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/results/measurements.hpp"
#include "models/gpu/device.hpp"
#include "models/validation/logged_power.hpp"
#include "sim/timeline/graph.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/replay_tables.hpp"
#include "tools/commands/command.hpp"
#include "tools/drawing/page.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/table.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/screen.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

namespace {

struct ReplayOptions {
  std::string trace, gpu, clocks;
  std::string db, page, timeline;
  StepOptions step;
  CapturedClockOptions captured;
  std::string table;
  std::optional<double> power_limit_w;
  std::uint32_t device = 0;
  bool per_kernel = false;
  OutputFormat format = OutputFormat::table;
};

std::string label_of(const GpuSpec& spec, const ClockPair& clock) {
  const ClockGrid grid(spec, {clock});
  return grid.label(*grid.find(clock));
}

PowerTrack power_track(const PowerEvidence& power, double makespan_s) {
  PowerTrack track;
  for (const PowerSample& sample : power.log->samples) {
    const double at_s = sample.time_s + power.alignment.offset_s;
    if (at_s < 0.0 || at_s > makespan_s) continue;
    track.at_s.push_back(at_s);
    track.power_w.push_back(sample.power_w);
  }
  return track;
}

void tell_notes(const Capture& capture, const ReplayComparison& comparison,
                const std::optional<PowerEvidence>& power) {
  for (const std::string& line : capture.left_out) tell("note: left out: {}\n", printable(line));
  if (!power) return;
  const Alignment& a = power->alignment;
  if (a.zone_quarter_hours) {
    tell("note: {} taken as UTC{:+g}; set --power-zone if it is not\n", printable(power->log->file),
         *a.zone_quarter_hours / 4.0);
  }
  tell("note: power log {}\n", text_of(a));
  if (!comparison.measured) {
    const SensorModel& sensor = power->sensor;
    const double shortest_s = 2.0 * std::max(sensor.window_s, sensor.cycle_s);
    tell("note: {} does not give the energy of the run, which lasts {}: {}\n",
         printable(power->log->file), time_text(comparison.totals.captured_s),
         shortest_s > 0.0
             ? fmt::format("its readings are means of {}{}; a run of {} at least is needed, and a "
                           "log from before it until {} after it",
                           time_text(sensor.window_s),
                           sensor.cycle_s > 0.0 ? ", new every " + time_text(sensor.cycle_s) : "",
                           time_text(shortest_s), time_text(0.5 * sensor.window_s))
             : "log from before it until after it");
  }
  if (comparison.power_residual_w) {
    std::string unknown;
    for (const ReplayRow& row : comparison.classes) {
      if (!row.measured_power_w) unknown += (unknown.empty() ? "" : ", ") + row.name;
    }
    if (!unknown.empty())
      tell("note: measured power unknown: {}: samples hardly see them run\n", unknown);
  } else {
    tell("note: too few samples for the power of classes{}\n",
         comparison.measured ? "; only energies are compared" : "");
  }
}

// The model's compute as a whole; collectives apart, since their captured time is not work alone.
std::string verdict_text(const ReplayComparison& comparison) {
  std::string text;
  const ReplayRow& compute = comparison.compute;
  if (const auto& error = compute.time_error) {
    text += fmt::format(
        "compute: {} of {} are compared; predicted {} %{}: {}\n", time_text(compute.compared_s),
        time_text(compute.captured_s), format_signed(100.0 * error->value, 1),
        error->half_width ? fmt::format(" +-{:.1f}", 100.0 * *error->half_width) : "",
        name_of(verdict_of(compute)));
  }
  const auto collectives =
      std::ranges::find(comparison.classes, KernelClass::communication, &ReplayRow::kind);
  if (collectives != comparison.classes.end()) {
    text += fmt::format("collectives: {} captured, waiting for other ranks included",
                        time_text(collectives->captured_s));
    if (collectives->time_error)
      text += fmt::format("; {} predicted for the transfer", time_text(collectives->predicted_s));
    text += "; no verdict on the model\n";
  }
  return text;
}

std::string change_text(double now, double before) {
  return before > 0.0 ? format_signed(100.0 * (now / before - 1.0), 2) : "-";
}

// Predicted beside captured time, and how much of the GPU time was compared and met.
std::string replay_answer(const ReplayComparison& comparison) {
  const ReplayTotals& t = comparison.totals;
  double within_s = 0.0, compared_s = 0.0, all_s = 0.0;
  for (const ReplayRow& row : comparison.kernels) {
    all_s += row.captured_s;
    const Verdict verdict = verdict_of(row);
    if (verdict == Verdict::within) within_s += row.captured_s;
    if (row.time_error) compared_s += row.captured_s;
  }
  const auto share = [&](double s) { return 100.0 * s / std::max(all_s, 1e-12); };
  std::string answer =
      fmt::format("The model gives the run {}; it took {}: {} %.", time_text(t.predicted_s),
                  time_text(t.captured_s), change_text(t.predicted_s, t.captured_s));
  if (comparison.measured) {
    const double measured_j = comparison.measured->energy_j;
    answer += fmt::format(" Energy {:.1f} J; the log says {:.1f} J: {} %.", t.predicted_j,
                          measured_j, change_text(t.predicted_j, measured_j));
  }
  return answer +
         fmt::format(" {:.0f} % of the GPU time was compared, {:.0f} % is within {:.0f} %.",
                     share(compared_s), share(within_s), 100.0 * verdict_tolerance);
}

void print_all(const ReplayOptions& o, const ReplayRequest& request, const GpuSpec& spec,
               const ReplayComparison& comparison, const std::optional<PowerEvidence>& power) {
  const Shown shown{request.replayed_clock != request.captured_clock, power.has_value()};
  const OutputTable runs = runs_table(request, comparison),
                    classes = rows_table(comparison.classes, "class", shown),
                    kernels = rows_table(comparison.kernels, "kernel", shown),
                    steps = steps_table(comparison.steps, shown),
                    compute = rows_table({comparison.compute}, "class", shown),
                    coverage = coverage_table(comparison.coverage);
  if (o.format == OutputFormat::json) {
    std::vector<NamedTable> tables{{"runs", &runs},       {"coverage", &coverage},
                                   {"compute", &compute}, {"classes", &classes},
                                   {"steps", &steps},     {"kernels", &kernels}};
    std::optional<OutputTable> alignment;
    if (power) tables.push_back({"power", &alignment.emplace(alignment_table(*power))});
    return print(render_json_object(tables));
  }
  if (o.format != OutputFormat::table) return print(o.per_kernel ? kernels : classes, o.format);
  const ReplayCoverage& c = comparison.coverage;
  const double total_s = std::max(c.total_s(), 1e-12);
  print_notes(
      answer_text(fmt::format("{} on {}", printable(request.trace_file), printable(spec.title)),
                  replay_answer(comparison)));
  print(runs, o.format);
  const auto share = [&](double time_s) { return percent * time_s / total_s; };
  print_notes(
      fmt::format("\nGPU time, predicted without captured times: {}. Plans (explore) start from "
                  "captured times: "
                  "{}.\n\n",
                  shares_text({{share(c.measured_s), "measured"},
                               {share(c.scaled_s), "scaled"},
                               {share(c.derived_s), "derived"},
                               {share(c.guessed_s), "guessed"},
                               {share(c.anchored_s), "anchored (they keep them)"}}),
                  shares_text({{share(c.measured_s + c.scaled_s), "measured"},
                               {share(c.derived_s + c.guessed_s + c.anchored_s), "anchored"}})));
  print(classes, o.format);
  print("\n" + verdict_text(comparison));
  if (steps.rows() > 0) {
    print("\n");
    print(steps, o.format);
  }
  if (o.per_kernel) {
    print("\n");
    print(kernels, o.format);
  }
}

std::string page_of(const ReplayRequest& request, const CaptureReplay& replay,
                    const ReplayComparison& comparison, const std::optional<PowerEvidence>& power) {
  const Shown shown{true, power.has_value()};
  const OutputTable runs = runs_table(request, comparison),
                    classes = rows_table(comparison.classes, "class", shown),
                    kernels = rows_table(comparison.kernels, "kernel", shown),
                    steps = steps_table(comparison.steps, shown),
                    coverage = coverage_table(comparison.coverage);
  const GpuSpec& spec = replay.spec();
  return drawn_page(
      {fmt::format("Replay of {}", replay.capture().name),
       fmt::format("{} on {}", request.trace_file, spec.title), replay_answer(comparison),
       fmt::format(
           "clocks of the capture: {}; model error: {}{}{}", request.captured_clock,
           model_error_text(spec),
           power ? fmt::format("; power log {}: {}", power->log->file, text_of(power->alignment))
                 : "",
           spec.calibrated ? "" : ". This GPU is not calibrated: its numbers are rough")},
      std::array{
          PagePart{.name = "kernels",
                   .title = "Predicted over captured",
                   .text = fmt::format("The band is {:.0f} %. A larger mark is a larger share "
                                       "of the time.",
                                       100.0 * verdict_tolerance),
                   .table = &kernels,
                   .charts = fmt::format(R"([{{"title": "Time of the launches of a kernel",
                     "pairs": [["compared_ms", "predicted_ms", "kernels"]], "log": "xy",
                     "diagonal": true, "band": {0}, "by": "verdict", "weight": "captured_ms"}},
                     {{"title": "Error over the time of a kernel", "x": "captured_ms", "y":
                     ["error_pct"], "half": "error_90_pct", "log": "x", "band": {0}, "by":
                     "verdict", "weight": "captured_ms"}}])",
                                         100.0 * verdict_tolerance)},
          PagePart{.name = "runs", .title = "The run, four times", .table = &runs},
          PagePart{.name = "coverage", .title = "Where times come from", .table = &coverage},
          PagePart{.name = "classes", .title = "Classes", .table = &classes},
          PagePart{.name = "steps", .title = "Steps", .table = &steps}});
}

// Shipped traces by name, our own files, and those of other tools.
Capture read_capture(const ReplayOptions& o) {
  const ImportOptions& options = o.step.import;
  if (!std::filesystem::exists(o.trace)) return as_capture(load_trace(o.trace));
  if (is_trace(capture_format(o.trace))) return as_capture(import_trace(o.trace, options));
  Capture capture = import_capture(o.trace, options);
  const auto timed = [](const CapturedLaunch& launch) { return launch.duration_ns > 0; };
  if (std::ranges::none_of(capture.launches, timed))
    throw DataError(fmt::format("{}: no launch has a time", printable(o.trace)),
                    {.in = {}, .hint = "a replay compares with a captured run"});
  return capture;
}

Capture chosen_capture(const ReplayOptions& o) {
  Capture capture = read_capture(o);
  capture.name = with_input_named(std::move(capture.name));
  if (!o.step.step.empty()) capture = only_step(std::move(capture), o.step.step);
  if (o.device >= capture.devices.size()) {
    throw UsageError(fmt::format("--device is {}; {} has {} (0 to {})", o.device, capture.name,
                                 capture.devices.size(), capture.devices.size() - 1));
  }
  return capture;
}

GpuSpec chosen_gpu(const ReplayOptions& o, const Capture& capture) {
  return load_gpu_for_devices(o.gpu, device_names(std::span(&capture, 1)), capture.provenance,
                              o.trace);
}

ExitStatus run(const ReplayOptions& o, const RunContext& context) {
  if (!o.table.empty() && o.power_limit_w)
    throw UsageError("--power-limit does nothing for cells of a table");
  const Capture capture = chosen_capture(o);
  GpuSpec spec = chosen_gpu(o, capture);
  std::optional<PowerLog> log;
  std::optional<PowerEvidence> power;
  std::optional<std::string> clock;
  if (!o.captured.power.empty()) {
    log = read_told_power_log(o.captured.power, o.captured.log);
    const PlacedLog placed =
        placed_log(capture, o.device, spec.title, *log, o.captured.power_zone_h);
    power = PowerEvidence{&*log, placed.sensor, placed.alignment, o.device};
    clock = logged_clock(*log, &spec);
  }
  if (!o.captured.clock.empty()) clock = o.captured.clock;
  const ClockPair captured = captured_clock(spec, clock);
  const ClockPair replayed = o.clocks.empty() ? captured : parse_clock_pair(spec, o.clocks);
  if (power) {
    LoggedRun logged = with_logged_power(spec, capture, o.device, captured, *log,
                                         {power->sensor, power->alignment});
    for (const std::string& note : logged.notes) tell("note: {}\n", note);
    spec = std::move(logged.spec);
  }
  const ReplayRequest request{with_input_named(o.trace), label_of(spec, captured),
                              label_of(spec, replayed), context.command_line};

  const CaptureReplay replay(capture, spec, captured, o.power_limit_w,
                             cells_of_table(o.table, spec, capture.kernels));
  const ReplayRuns runs = run_all(replay, replayed);
  const ReplayComparison comparison = compare(replay, runs, power);
  tell_notes(capture, comparison, power);
  print_all(o, request, spec, comparison, power);
  if (!o.page.empty()) write_output(o.page, page_of(request, replay, comparison, power));
  if (!o.timeline.empty()) {
    const ClockGrid at_capture(spec, {captured}), at_replay(spec, {replayed});
    std::vector<GraphTrack> tracks{
        {"predicted at " + request.captured_clock, &runs.predicted.graph, &at_capture}};
    if (!o.clocks.empty()) {
      tracks.push_back({"replayed at " + request.replayed_clock, &runs.replayed.graph, &at_replay});
    }
    const PowerTrack logged =
        power ? power_track(*power, comparison.totals.captured_s) : PowerTrack{};
    FileWriter file(o.timeline);
    write_graph_timeline([&](std::string_view text) { file.write(text); }, replay.graph(), spec,
                         tracks, logged);
    tell_written(file.commit());
  }
  if (!o.db.empty()) {
    const std::int64_t id = store_replay(o.db, request, replay, comparison, power);
    tell("stored as replay {} in {}\n", id, o.db);
  }
  return ExitStatus::done;
}

}  // namespace

Action setup_replay(CommandLine& app) {
  auto o = std::make_shared<ReplayOptions>();
  app.add_option(
         "TRACE", o->trace,
         "What rubato trace import reads: PyTorch profiler, Nsight Systems, Rubato capture ...")
      ->required()
      ->reads_file();
  app.add_option("--gpu", o->gpu,
                 "Spec: a shipped name or a file [the one of the capture's device]");
  add_captured_clock_options(app, o->captured);
  app.add_option("--clocks", o->clocks, "Also replay at these clocks, MEMORY/CORE");
  app.add_option("--power-limit", o->power_limit_w, "Board power limit in W");
  add_table_option(app, o->table);
  add_step_options(app, o->step);
  app.add_option("--device", o->device, "Position of the GPU that power is compared of")
      ->capture_default_str();
  app.add_flag("--per-kernel", o->per_kernel, "Also print every kernel");
  app.add_option("--db", o->db, "Store the comparison in this SQLite database");
  app.add_option("--page", o->page, "Write an HTML page with the pictures")
      ->ends_in({".html", ".htm"});
  app.add_option("--timeline", o->timeline, "Write captured and simulated runs for ui.perfetto.dev")
      ->ends_in({".json"});
  add_format_options(app, o->format);
  app.footer(
      "Verdict: within or off by more than 10 % of the captured time, 90 % error bar included.");
  return [o](const RunContext& context) { return run(*o, context); };
}

}  // namespace rubato
