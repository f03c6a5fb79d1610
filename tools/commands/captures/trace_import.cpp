// rubato trace import: what captures of other tools and our own files hold.

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/gzip.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/trace.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/files.hpp"
#include "tools/terminal/output.hpp"
#include "traces/capture.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

constexpr double ns_per_us = 1e3, ns_per_ms = 1e6;

// Appends the columns of sums to those that say what is summed.
std::vector<Column> sums_columns(std::vector<Column> columns) {
  columns.insert(columns.end(), {{.key = "launches"},
                                 {.key = "time_us", .for_programs = true},
                                 {.key = "time_ms", .title = "time ms", .for_people = true}});
  return columns;
}

void add_sums(OutputTable& table, std::vector<Cell> row, const LaunchSums& sums) {
  const auto time_ns = static_cast<double>(sums.time_ns);
  row.emplace_back(static_cast<std::int64_t>(sums.launches));
  row.emplace_back(time_ns / ns_per_us);
  row.emplace_back(time_ns / ns_per_ms);
  table.add_row(std::move(row));
}

OutputTable counts_table(const CaptureStats& stats) {
  OutputTable table(sums_columns({Column{"what"}}));
  const auto add = [&](const char* what, const LaunchSums& sums) {
    add_sums(table, {std::string(what)}, sums);
  };
  add("kernels", stats.kernels);
  add("copies", stats.copies);
  add("memsets", stats.memsets);
  add("collectives", stats.collectives);
  return table;
}

OutputTable groups_table(const Capture& capture, const CaptureStats& stats) {
  OutputTable table(sums_columns({Column{"group"}, Column{"name"}}));
  const auto add = [&](const char* group, std::string name, const LaunchSums& sums) {
    if (sums.launches == 0) return;
    add_sums(table, {std::string(group), std::move(name)}, sums);
  };
  for (std::size_t s = 0; s < capture.streams.size(); ++s) {
    const CaptureStream& stream = capture.streams[s];
    add("stream", fmt::format("{}:{}", capture.devices[stream.device].id, stream.id),
        stats.by_stream[s]);
  }
  for (std::size_t s = 0; s < capture.steps.size(); ++s)
    add("step", capture.steps[s].name, stats.by_step[s]);
  for (std::size_t p = 0; p < stats.by_pass.size(); ++p)
    add("pass", std::string(name_of(static_cast<Pass>(p))), stats.by_pass[p]);
  for (std::size_t c = 0; c < stats.by_class.size(); ++c)
    add("class", std::string(name_of(static_cast<KernelClass>(c))), stats.by_class[c]);
  for (const std::string& name : all_names<CallKind>()) {
    LaunchSums sums;
    for (const CapturedCall& call : capture.calls) {
      if (name_of(call.kind) != name) continue;
      ++sums.launches;
      sums.time_ns += call.duration_ns;
    }
    add("host call", name, sums);
  }
  return table;
}

// Shares of GPU time, of launches where the file has no times: measured, derived, guessed, unknown.
struct Coverage {
  std::array<double, 4> percent{};
  bool timed = true;
};

Coverage coverage_of(const Capture& capture, const CaptureStats& stats) {
  std::array<double, 4> sums{static_cast<double>(stats.coverage.measured_ns),
                             static_cast<double>(stats.coverage.derived_ns),
                             static_cast<double>(stats.coverage.guessed_ns),
                             static_cast<double>(stats.coverage.unknown_ns)};
  const bool timed = std::ranges::any_of(sums, [](double sum) { return sum > 0.0; });
  if (!timed) {
    for (const CapturedLaunch& launch : capture.launches)
      sums[static_cast<std::size_t>(capture.kernels[index(launch.kernel)].work_source)] += 1.0;
  }
  const double all = std::max(sums[0] + sums[1] + sums[2] + sums[3], 1.0);
  for (double& sum : sums) sum *= 100.0 / all;
  return {sums, timed};
}

std::string coverage_line(const Capture& capture, const CaptureStats& stats) {
  const Coverage coverage = coverage_of(capture, stats);
  return fmt::format(
      "work of the kernels: measured for {:.1f} % of {}, derived from shapes {:.1f} %, guessed "
      "{:.1f} %, unknown {:.1f} %\n",
      coverage.percent[0], coverage.timed ? "GPU time" : "launches", coverage.percent[1],
      coverage.percent[2], coverage.percent[3]);
}

// What the notes say, for programs.
OutputTable capture_table(const Capture& capture, const CaptureStats& stats, CaptureFormat kind) {
  OutputTable table({{"name"},
                     {"format"},
                     {"generator"},
                     {"rank"},
                     {"world_size"},
                     {"step_source"},
                     {"distinct_names"},
                     {"kernels"},
                     {"span_us"},
                     {"busy_us"},
                     {"launched_in_file"},
                     {"work_shares_of"},
                     {"work_measured_pct"},
                     {"work_derived_pct"},
                     {"work_guessed_pct"},
                     {"work_unknown_pct"}});
  const auto count = [](std::uint64_t value) { return Cell(static_cast<std::int64_t>(value)); };
  const auto optional = [](const std::optional<std::uint32_t>& value) {
    return value ? Cell(static_cast<std::int64_t>(*value)) : Cell(std::monostate{});
  };
  const Coverage coverage = coverage_of(capture, stats);
  table.add_row({printable(capture.name), std::string(name_of(kind)),
                 printable(capture.provenance.generator), optional(capture.rank),
                 optional(capture.world_size), std::string(name_of(capture.step_source)),
                 count(stats.names), count(capture.kernels.size()),
                 static_cast<double>(stats.span_ns) / ns_per_us,
                 static_cast<double>(stats.busy_ns) / ns_per_us, count(stats.launched_in_file),
                 std::string(coverage.timed ? "gpu_time" : "launches"), coverage.percent[0],
                 coverage.percent[1], coverage.percent[2], coverage.percent[3]});
  return table;
}

OutputTable devices_table(const Capture& capture) {
  OutputTable table({{"id"}, {"name"}});
  for (const CaptureDevice& device : capture.devices)
    table.add_row({static_cast<std::int64_t>(device.id), printable(device.name)});
  return table;
}

OutputTable left_out_table(const Capture& capture) {
  OutputTable table(std::vector<Column>{{"what"}});
  for (const std::string& line : capture.left_out) table.add_row({printable(line)});
  return table;
}

std::string import_notes(const Capture& capture, const CaptureStats& stats, CaptureFormat kind) {
  std::string devices;
  for (const CaptureDevice& device : capture.devices) {
    devices += fmt::format("{}{}{}", devices.empty() ? "" : ", ", device.id,
                           device.name.empty() ? "" : " " + printable(device.name));
  }
  std::string text = fmt::format(
      "\n{}, {}: {} distinct kernel names, {} kernels by name, grid, pass and shape; devices {}\n"
      "first start to last end {}, some kernel running {}; {} of {} kernels were "
      "launched in the file\n{}",
      printable(with_input_named(capture.name)), name_of(kind), stats.names, capture.kernels.size(),
      devices, time_text(s_per_ns * static_cast<double>(stats.span_ns)),
      time_text(s_per_ns * static_cast<double>(stats.busy_ns)), stats.launched_in_file,
      stats.kernels.launches, coverage_line(capture, stats));
  if (capture.step_source == StepSource::whole_file)
    text +=
        "no step is marked and no period of training steps was found; the whole file counts as "
        "one\n";
  if (capture.step_source == StepSource::periodic)
    text += fmt::format("no step is marked; {} were found where the sequence of kernels repeats\n",
                        capture.steps.size());
  for (const std::string& line : capture.left_out) text += "left out: " + printable(line) + '\n';
  return text;
}

struct ImportCommand {
  std::string file, out, capture;
  ImportOptions import;
  double max_expanded_gb = 64.0;
  FoldOptions fold;
  OutputFormat format = OutputFormat::table;
};

void print_capture(const Capture& capture, CaptureFormat kind, OutputFormat format) {
  const CaptureStats stats = capture_stats(capture);
  const OutputTable counts = counts_table(stats), groups = groups_table(capture, stats),
                    about = capture_table(capture, stats, kind), devices = devices_table(capture),
                    left_out = left_out_table(capture);
  switch (format) {
    case OutputFormat::json:
      print(render_json_object({{"capture", &about},
                                {"devices", &devices},
                                {"counts", &counts},
                                {"groups", &groups},
                                {"left_out", &left_out}}));
      break;
    case OutputFormat::json_lines:
    case OutputFormat::csv: print(groups, format); break;
    case OutputFormat::table:
      print(counts, format);
      print("\n");
      print(groups, format);
      print_notes(import_notes(capture, stats, kind));
  }
}

ExitStatus run(ImportCommand o) {
  constexpr double bytes_per_gb = 1e9, most_gb = 1e6;
  if (!(o.max_expanded_gb > 0.0 && o.max_expanded_gb <= most_gb))
    throw UsageError(fmt::format("--max-expanded-gb is {}; expected a number > 0 and <= 1e6",
                                 o.max_expanded_gb));
  o.import.max_expanded_bytes = static_cast<std::uint64_t>(o.max_expanded_gb * bytes_per_gb);
  const CaptureFormat kind = capture_format(o.file);
  const Capture capture = import_capture(o.file, o.import);
  print_capture(capture, kind, o.format);
  if (is_trace(kind)) {
    const Trace trace = import_trace(o.file, o.import);
    if (o.format == OutputFormat::table) print('\n' + trace_summary(trace));
    if (!o.out.empty()) write_text(o.out, as_file(trace, o.out));
  } else if (!o.out.empty()) {
    write_text(o.out, as_file(fold(capture, o.fold), o.out));
  }
  if (!o.capture.empty()) save_capture(capture, o.capture);
  return ExitStatus::done;
}

}  // namespace

Action setup_trace_import(CommandLine& app) {
  auto o = std::make_shared<ImportCommand>();
  app.add_option("FILE", o->file,
                 "PyTorch profiler trace, Nsight Systems SQLite export, Nsight Compute CSV, "
                 "Chakra execution trace; Rubato capture or trace")
      ->required()
      ->reads_file();
  app.add_option("-o,--output", o->out, "Trace of one step, .json or .csv [none]");
  app.add_option("--capture", o->capture,
                 "Everything, all streams and steps, .json or .json.gz [none]");
  app.add_option("--step", o->fold.step, "Which step, from 0 [the one with most launches]");
  app.add_option("--device", o->fold.device, "Which GPU [the one with most launches]");
  add_phase_option(app, o->import);
  app.add_flag("--partial", o->import.partial, "Leave out what cannot be read, and say so");
  app.add_option("--max-expanded-gb", o->max_expanded_gb, "What gzip may expand to, GB")
      ->capture_default_str();
  add_format_options(app, o->format);
  app.footer("The trace takes the busiest stream of one GPU; runs that repeat become segments.");
  return [o](const RunContext&) { return run(*o); };
}

}  // namespace rubato
