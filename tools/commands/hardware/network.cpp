// rubato network: clusters, the time of a collective on one, and how far the model is from
// measured ones.

#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "models/calibration/network_fit.hpp"
#include "models/network/cluster_fit.hpp"
#include "models/network/collective_time.hpp"
#include "models/validation/network_errors.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/options/captured.hpp"
#include "tools/terminal/output.hpp"
#include "traces/import/file_patterns.hpp"

namespace rubato {

namespace {

OutputTable clusters_table() {
  OutputTable table({{"name"},
                     {"title"},
                     {"gpus_per_node", "GPUs/node"},
                     {"nodes", "nodes"},
                     {"inside"},
                     {"inside_gbs", "GB/s", 1},
                     {"inside_latency", "latency", 2},
                     {"between"},
                     {"between_gbs", "GB/s a GPU", 2},
                     {"between_latency", "latency", 2},
                     {"in_switch_gbs", "in switch GB/s", 0}});
  for (const std::string& name : shipped_clusters()) {
    const ClusterSpec cluster = load_cluster(name);
    const Cell none = std::monostate{};
    table.add_row({name, cluster.title, static_cast<std::int64_t>(cluster.gpus_per_node),
                   static_cast<std::int64_t>(cluster.nodes),
                   std::string(name_of(cluster.inside.kind)), cluster.inside.bus_gbs,
                   cluster.inside.latency_scale,
                   cluster.between ? Cell(std::string(name_of(cluster.between->kind))) : none,
                   cluster.between ? Cell(cluster.between->bus_gbs) : none,
                   cluster.between ? Cell(cluster.between->latency_scale) : none,
                   cluster.in_switch_gbs ? Cell(*cluster.in_switch_gbs) : none});
  }
  return table;
}

Action setup_list(CommandLine& app) {
  auto format = std::make_shared<OutputFormat>(OutputFormat::table);
  add_format_options(app, *format);
  return [format](const RunContext&) {
    const OutputTable table = clusters_table();
    if (*format == OutputFormat::table)
      print_notes(
          fmt::format("{} clusters are shipped. How long a collective takes on one: rubato "
                      "network time {}\n\n",
                      table.rows(), shipped_clusters().front()));
    print(table, *format);
    return ExitStatus::done;
  };
}

struct TimeOptions {
  std::string cluster = "dgx-a100", collective = "all_reduce";
  unsigned ranks = 8, stride = 1;
  std::vector<double> bytes{1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
  OutputFormat format = OutputFormat::table;
};

Collective collective_of(const TimeOptions& o, double bytes) {
  const auto kind = from_name<CollectiveKind>(o.collective);
  if (!kind || *kind == CollectiveKind::other) {
    throw UsageError(fmt::format("--collective '{}' is not known{}", o.collective,
                                 did_you_mean(o.collective, all_names<CollectiveKind>())));
  }
  if (o.ranks < 2) throw UsageError(fmt::format("--ranks is {}; expected at least 2", o.ranks));
  if (o.stride < 1) throw UsageError("--stride is 0; expected at least 1");
  if (!(bytes > 0.0 && bytes <= 1e18))
    throw UsageError(fmt::format("--bytes is {}; expected a number above 0, at most 1e18", bytes));
  return {*kind, bytes, o.ranks, o.stride};
}

OutputTable times_table(const TimeOptions& o) {
  const ClusterSpec cluster = load_cluster(o.cluster);
  OutputTable table({{"message_bytes", "bytes", 0},
                     {.key = "time_us", .for_programs = true},
                     {.key = "time", .for_people = true},
                     {"algorithm"},
                     {"algorithm_gbs", "algorithm GB/s", 2},
                     {"bus_gbs", "bus GB/s", 2}});
  for (const double bytes : o.bytes) {
    const CollectiveTime time =
        collective_time(cluster, collective_of(o, bytes), network_parameters());
    const double algorithm_gbs = bytes / time.time_s * 1e-9;
    const Collective message = collective_of(o, bytes);
    table.add_row({bytes, time.time_s * 1e6, time_text(time.time_s),
                   std::string(name_of(time.algorithm)), algorithm_gbs,
                   algorithm_gbs * bus_factor(message.kind, message.group_size)});
  }
  return table;
}

Action setup_time(CommandLine& app) {
  auto o = std::make_shared<TimeOptions>();
  app.add_option("CLUSTER", o->cluster, "Shipped name or file")->capture_default_str();
  app.add_option("--collective", o->collective,
                 "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send_recv")
      ->capture_default_str();
  app.add_option("--ranks", o->ranks, "Ranks of the group")->capture_default_str();
  app.add_option("--stride", o->stride,
                 "GPUs from one rank to the next: the tensor-parallel degree for data-parallel "
                 "groups beside it")
      ->capture_default_str();
  app.add_option("--bytes", o->bytes,
                 "Whole message as nccl-tests counts it: total output of an all-gather, total "
                 "input of a reduce-scatter (several with commas)")
      ->delimiter(',');
  add_format_options(app, o->format);
  return [o](const RunContext&) {
    const OutputTable table = times_table(*o);
    if (o->format == OutputFormat::table)
      print_notes(fmt::format("{} of {} ranks on {}, by size of the message:\n\n", o->collective,
                              o->ranks, printable(o->cluster)));
    print(table, o->format);
    return ExitStatus::done;
  };
}

struct ErrorOptions {
  std::vector<std::string> files;
  bool shipped = false, latency = false;
  OutputFormat format = OutputFormat::table;
};

std::vector<CollectiveSeries> series_of(const std::vector<std::string>& files) {
  const std::vector<std::filesystem::path> paths(files.begin(), files.end());
  return read_collective_series(paths);
}

OutputTable errors_table(const std::vector<NetworkErrors>& errors) {
  OutputTable table({{"group"},
                     {"points"},
                     {"mean_pct", "mean %", 1},
                     {"median_pct", "median %", 1},
                     {"p90_pct", "90 % below", 1},
                     {"mean_to_64kib_pct", "to 64 KiB", 1},
                     {"mean_to_1mib_pct", "to 1 MiB", 1},
                     {"mean_to_16mib_pct", "to 16 MiB", 1},
                     {"mean_above_pct", "above", 1}});
  for (const NetworkErrors& group : errors) {
    std::vector<Cell> row{group.group, static_cast<std::int64_t>(group.all.count), group.all.mean,
                          group.all.p50, group.all.p90};
    for (const ErrorQuantiles& of_class : group.by_size)
      row.push_back(of_class.count > 0 ? Cell(of_class.mean) : Cell(std::monostate{}));
    table.add_row(std::move(row));
  }
  return table;
}

Action setup_errors(CommandLine& app) {
  auto o = std::make_shared<ErrorOptions>();
  app.add_option("FILE", o->files,
                 "CSV with columns system, gpu, gpus, nodes, link, collective, bytes, time_us, and "
                 "maybe library (newer, older)")
      ->required()
      ->reads_file();
  app.add_flag("--shipped", o->shipped,
               "By the shipped constants; else each system by constants fitted to the others");
  app.add_flag("--latency", o->latency,
               "Of each system its time for the shortest message is known too");
  add_format_options(app, o->format);
  app.footer(
      "Errors are |model / measured - 1|. For each collective and group of GPUs the model is given "
      "the measured bandwidth of the longest messages. The words in 'gpu' and 'link' say which "
      "links a message takes: docs/network.md.");
  return [o](const RunContext&) {
    const std::vector<CollectiveSeries> series = series_of(o->files);
    const KnownOfSystem known =
        o->latency ? KnownOfSystem::bandwidth_and_latency : KnownOfSystem::bandwidth;
    const std::vector<NetworkPoint> points =
        o->shipped ? predict_series(network_parameters(), series, known)
                   : predict_left_out(series, known);
    print(errors_table(network_errors(points)), o->format);
    return ExitStatus::done;
  };
}

Action setup_fit(CommandLine& app) {
  struct Options {
    std::vector<std::string> files;
    std::string out = "-";
  };
  auto o = std::make_shared<Options>();
  app.add_option("FILE", o->files, "CSV as for 'errors'")->required()->reads_file();
  app.add_option("-o,--output", o->out, "File; - is standard output")->capture_default_str();
  return [o](const RunContext&) {
    const std::vector<CollectiveSeries> series = series_of(o->files);
    NetworkParameters parameters = fit_network(series);
    parameters.source =
        fmt::format("fitted by rubato network fit to {}", fmt::join(o->files, ", "));
    write_output(o->out, to_json(parameters));
    return ExitStatus::done;
  };
}

struct CaptureOptions {
  std::vector<std::string> files;
  std::string cluster, out, name;
  OutputFormat format = OutputFormat::table;
};

OutputTable captured_table(const ClusterSpec& frame, const ClusterFit& fit,
                           std::span<const ObservedCollective> observed) {
  OutputTable table({{"collective"},
                     {"ranks"},
                     {"message_bytes", "bytes", 0},
                     {"launches"},
                     {"time_us", "us", 1},
                     {"frame_us", "frame us", 1},
                     {"fitted_us", "fitted us", 1},
                     {"error_pct", "error %", 1}});
  for (const ObservedCollective& one : observed) {
    const auto time_us = [&](const ClusterSpec& cluster) {
      return us_per_s * collective_time(cluster, one.message, network_parameters()).time_s;
    };
    const double fitted_us = time_us(fit.cluster), captured_us = us_per_s * one.time_s;
    table.add_row({std::string(name_of(one.message.kind)),
                   static_cast<std::int64_t>(one.message.group_size), one.message.message_bytes,
                   static_cast<std::int64_t>(one.launches), captured_us, time_us(frame), fitted_us,
                   percent * (fitted_us / captured_us - 1.0)});
  }
  return table;
}

// "between GPUs of a node 91.3 GB/s (88 to 95 without one of the messages)"
std::string fitted_text(const std::string& what, const std::string& unit,
                        const std::optional<FittedNumber>& fitted, double frame) {
  if (!fitted)
    return fmt::format("{}: the messages do not tell; {:.4g}{} as in the frame.\n", what, frame,
                       unit);
  return fmt::format("{}: {:.4g}{} (frame {:.4g}); {:.4g} to {:.4g} without one of the messages.\n",
                     what, fitted->value, unit, frame, fitted->low, fitted->high);
}

std::string fit_notes(const CaptureOptions& o, const ClusterSpec& frame, const ClusterFit& fit) {
  std::string text = fitted_text("Inside nodes", " GB/s", fit.inside_gbs, frame.inside.bus_gbs);
  if (frame.between)
    text += fitted_text("Between nodes", " GB/s a GPU", fit.between_gbs, frame.between->bus_gbs);
  text += fitted_text("Latencies inside nodes", " x the model's", fit.inside_latency,
                      frame.inside.latency_scale);
  if (frame.between) {
    text += fitted_text("Latencies between nodes", " x the model's", fit.between_latency,
                        frame.between->latency_scale);
  }
  return text +
         (o.files.size() > 1
              ? "Times are medians from the last rank's arrival to the first end.\n"
              : "Of one rank nobody knows how long it waited: times are the shortest of each "
                "message, bandwidths at least these.\n");
}

ExitStatus run_capture(const CaptureOptions& o) {
  std::vector<Capture> captures;
  for (const std::string& file : o.files) captures.push_back(read_told_capture(file));
  const std::vector<ObservedCollective> observed = observed_collectives(captures);
  if (observed.empty()) {
    throw DataError(fmt::format("{}: no collective with kind, ranks and bytes", o.files.front()));
  }
  const ClusterSpec frame = load_cluster(o.cluster);
  ClusterFit fit = fit_cluster(frame, observed, network_parameters());
  print(captured_table(frame, fit, observed), o.format);
  if (o.format == OutputFormat::table) print('\n' + fit_notes(o, frame, fit));
  if (o.out.empty()) return ExitStatus::done;
  fit.cluster.name = o.name.empty() ? frame.name + "-captured" : o.name;
  const std::string source = fmt::format("fitted to {} messages of {} by rubato network capture",
                                         observed.size(), fmt::join(o.files, ", "));
  if (fit.inside_gbs) fit.cluster.inside.source = source;
  if (fit.between_gbs) fit.cluster.between->source = source;
  write_output(o.out, cluster_file(fit.cluster));
  return ExitStatus::done;
}

Action setup_capture(CommandLine& app) {
  auto o = std::make_shared<CaptureOptions>();
  app.add_option("CAPTURE", o->files, "Captures of the ranks of one run: files or patterns")
      ->required();
  app.add_option("--cluster", o->cluster,
                 "Shipped name or file: the frame, whose nodes and kinds of links hold")
      ->required();
  app.add_option("-o,--output", o->out, "Write the fitted cluster, for --cluster elsewhere");
  app.add_option("--name", o->name, "Of the fitted cluster [the frame's, -captured]");
  add_format_options(app, o->format);
  app.footer(
      "Give captures of all ranks: a collective is then timed from the arrival of its last rank. "
      "The time of one rank alone includes its waiting.");
  return [o](const RunContext&) {
    o->files = files_of_patterns(o->files);
    return run_capture(*o);
  };
}

}  // namespace

Action setup_network(CommandLine& app) {
  static constexpr std::array choices{
      Command{"list", "List the shipped clusters", &setup_list},
      Command{"time", "How long a collective takes on a cluster", &setup_time},
      Command{"errors", "Compare the model with measured collectives", &setup_errors},
      Command{"fit", "Fit the model's constants to measured collectives", &setup_fit},
      Command{"capture",
              "Bandwidth and latency of a cluster, from the collectives of a captured run",
              &setup_capture}};
  return one_of(app, choices);
}

}  // namespace rubato
