// rubato trace: generate, show and convert kernel traces.

#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/trace.hpp"
#include "tools/terminal/output.hpp"
#include "traces/files/trace_csv.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

std::string as_file(const Trace& trace, const std::string& path) {
  check_extension("the file", path, {".json", ".csv"});
  return path.ends_with(".csv") ? to_csv(trace) : to_json(trace);
}

std::string trace_summary(const Trace& trace) {
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  double flops = 0.0, bytes = 0.0;
  std::uint64_t launches = 0, unknown = 0;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const double count = static_cast<double>(counts[i]);
    flops += count * trace.kernels[i].flops.value_or(0.0);
    bytes += count * trace.kernels[i].dram_bytes.value_or(0.0);
    launches += counts[i];
    if (!trace.kernels[i].flops || !trace.kernels[i].dram_bytes) ++unknown;
  }
  std::string text =
      fmt::format("{}: {} kernels, {} launches, {:.1f} TFLOP, {:.1f} GB of DRAM traffic",
                  trace.name, trace.kernels.size(), launches, flops * 1e-12, bytes * 1e-9);
  if (unknown > 0) text += fmt::format(" ({} kernels with unknown work not counted)", unknown);
  text += '\n';
  for (const Segment& segment : trace.segments) {
    text += fmt::format("  {} x {}: {} launches\n", segment.repeat, segment.name,
                        segment.launches.size());
  }
  return text;
}

namespace {

Cell in_units(const std::optional<double>& value, double unit) {
  return value ? Cell(*value / unit) : Cell(std::monostate{});
}

OutputTable trace_table(const Trace& trace) {
  OutputTable table({{"kernel"},
                     {.key = "label", .room = Room::detail},
                     {"class"},
                     {"pass"},
                     {"launches"},
                     {"gflop", "GFLOP"},
                     {"dram_mb", "DRAM MB"},
                     {.key = "shape", .room = Room::detail}});
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const Kernel& kernel = trace.kernels[i];
    Cell shape;
    if (const auto& g = kernel.gemm) {
      shape = g->batch == 1 ? fmt::format("{} x {} x {}", g->m, g->n, g->k)
                            : fmt::format("{} x {} x {} x {}", g->m, g->n, g->k, g->batch);
    } else if (const auto& c = kernel.collective) {
      shape = fmt::format("{}, {:.1f} MB, {} ranks", name_of(c->kind), c->message_bytes * 1e-6,
                          c->group_size);
    }
    table.add_row({kernel.name, kernel.label, std::string(name_of(kernel.kind)),
                   std::string(name_of(kernel.pass)), static_cast<std::int64_t>(counts[i]),
                   in_units(kernel.flops, 1e9), in_units(kernel.dram_bytes, 1e6), shape});
  }
  return table;
}

// A trace of ours by name or file.
// @throws UsageError for a compressed capture, which another program wrote
Trace own_trace(const std::string& name) {
  if (name.ends_with(".gz") && std::filesystem::exists(name) && !is_trace(capture_format(name))) {
    throw UsageError(
        fmt::format("{}: a capture, not a trace", printable(name)),
        {.in = {}, .hint = "'rubato trace import FILE -o step.json' makes a trace of it"});
  }
  return load_trace(name);
}

Action setup_trace_show(CommandLine& app) {
  struct Options {
    std::string trace = "gpt3-xl";
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("TRACE", o->trace, "Name of a shipped trace, or a file")
      ->capture_default_str()
      ->reads_file();
  add_format_options(app, o->format);
  return [o](const RunContext&) {
    const Trace trace = own_trace(o->trace);
    if (o->format == OutputFormat::table) print_notes(trace_summary(trace) + '\n');
    print(trace_table(trace), o->format);
    return ExitStatus::done;
  };
}

Action setup_trace_convert(CommandLine& app) {
  struct Options {
    std::string from, to;
  };
  auto o = std::make_shared<Options>();
  app.add_option("TRACE", o->from, "Name of a shipped trace, or a file")->required()->reads_file();
  app.add_option("OUTPUT", o->to, "File to write, .json or .csv")->required();
  return [o](const RunContext&) {
    write_output(o->to, as_file(own_trace(o->from), o->to));
    return ExitStatus::done;
  };
}

}  // namespace

Action setup_trace(CommandLine& app) {
  static constexpr std::array choices{
      Command{"gen", "Generate the kernels of a training step from the shape of a model",
              &setup_trace_gen},
      Command{"show", "Show the kernels, launches and work of a trace", &setup_trace_show},
      Command{"convert", "Convert between JSON and CSV", &setup_trace_convert},
      Command{"import", "Read a run captured by another tool", &setup_trace_import},
      Command{"scale",
              "A training step at many degrees of parallelism: time, communication, saving",
              &setup_trace_scale}};
  return one_of(app, choices);
}

}  // namespace rubato
