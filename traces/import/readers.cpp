#include "traces/import/readers.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/formats/foreign_file.hpp"
#include "common/formats/json_outline.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/files/trace_csv.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/chakra_nodes.hpp"
#include "traces/import/device_clock.hpp"
#include "traces/import/kernel_work.hpp"
#include "traces/import/step_period.hpp"
#include "traces/serving_steps.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

std::string_view name_of(CaptureFormat value) noexcept {
  switch (value) {
    case CaptureFormat::kineto: return "Kineto";
    case CaptureFormat::nsight_compute: return "Nsight Compute CSV";
    case CaptureFormat::chakra_protobuf: return "Chakra protobuf";
    case CaptureFormat::chakra_json: return "Chakra JSON";
    case CaptureFormat::pipeline_passes: return "pass times of a pipeline stage";
    case CaptureFormat::rubato_capture: return "Rubato capture";
    case CaptureFormat::rubato_json: return "Rubato trace (JSON)";
    case CaptureFormat::rubato_csv: return "Rubato trace (CSV)";
    case CaptureFormat::nsight_systems: break;
  }
  return "Nsight Systems SQLite";
}

namespace {

// What a JSON file is, by its members and those of its first ones: strings may say anything.
// @param members  of the root, for messages
std::optional<CaptureFormat> json_format(const std::filesystem::path& path,
                                         std::vector<std::string>& members) {
  std::optional<CaptureFormat> format;
  bool ours = false;
  const auto see = [&](const JsonKey& key) {
    const auto is = [&](std::string_view name) { return key.text == name; };
    const bool number = !key.value.empty() && key.value.front() >= '0' && key.value.front() <= '9';
    constexpr std::size_t most_shown = 8;
    if (key.depth == 1 && members.size() < most_shown) members.emplace_back(key.text);
    const bool in_list = key.depth == 2 && members.empty();  // a bare list of events or nodes
    if ((key.depth == 1 && is("traceEvents")) || (in_list && is("ph"))) {
      format = CaptureFormat::kineto;
    } else if (key.depth == 1 && is("schema") && number) {
      ours = true;  // Chakra's schema is text
    } else if (key.depth == 1 && ours && is("kind")) {
      format = key.value.starts_with("\"capture\"") ? CaptureFormat::rubato_capture
                                                    : CaptureFormat::rubato_json;
    } else if ((key.depth == 1 && !ours && (is("workload_graph") || is("nodes"))) ||
               (in_list && (is("ctrl_deps") || is("data_deps")))) {
      format = CaptureFormat::chakra_json;
    } else if (key.depth == 2 && is("fwd_start")) {
      format = CaptureFormat::pipeline_passes;
    }
    return !format;
  };
  bool whole = false;
  try {
    constexpr std::uint64_t enough = std::uint64_t{64} << 20;  // against zip bombs
    ByteSource source(path, enough);
    whole = scan_json_keys(source, see);
  } catch (const DataError&) {
    // Damaged, or too large, before anything told what it is.
  }
  if (format) return format;
  if (ours) return CaptureFormat::rubato_json;
  // The reader of Kineto's files says where they are damaged or that they are empty.
  return whole && !members.empty() ? std::nullopt : std::optional(CaptureFormat::kineto);
}

// The required columns of trace_csv.hpp, in any order.
bool is_trace_csv(std::string_view head) {
  std::vector<std::string> columns;
  for (std::string_view cell : split(head.substr(0, head.find('\n')), ',')) {
    std::string& name = columns.emplace_back(cell);
    std::erase_if(name, [](char c) { return c == '"' || c == ' ' || c == '\r'; });
  }
  return std::ranges::all_of(
      std::array{"segment", "repeat", "kernel", "class", "pass"},
      [&](const char* name) { return std::ranges::find(columns, name) != columns.end(); });
}

// Tables that other tools print, which are not read.
struct OtherTable {
  std::string_view in_header, what, hint;
};
constexpr std::string_view export_hint =
    "run 'nsys export --type sqlite' on the report and use the result";
constexpr std::string_view record_hint =
    "record with torch.profiler, or with 'nsys profile' on NVIDIA's GPUs";
constexpr std::array other_tables{
    OtherTable{"Time (%),", "a summary of 'nsys stats', without launches", export_hint},
    OtherTable{"Start (ns),Duration (ns)", "a list of 'nsys stats', without host calls",
               export_hint},
    OtherTable{"== NVPROF is profiling", "output of nvprof", record_hint},
    OtherTable{"\"Start_Timestamp\",\"End_Timestamp\"", "a table of rocprofv3", record_hint},
    OtherTable{"\"BeginNs\",\"EndNs\"", "a table of rocprof", record_hint}};

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view what) {
  throw DataError(fmt::format("{}: is {}", printable(path.string()), what),
                  {.in = {},
                   .hint = "expected a PyTorch profiler trace (.json, .json.gz), an SQLite "
                           "export of Nsight Systems, a CSV of Nsight Compute, a Chakra "
                           "execution trace (.et, .json) or a file of Rubato"});
}

// What is not even of another kind that is known.
[[noreturn]] void refuse_unknown(const std::filesystem::path& path, std::string_view head) {
  constexpr std::size_t most_shown = 60;
  const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  if (head.empty()) refuse(path, "empty");
  const bool text = printable(line) == line && !line.empty();
  refuse(path, text ? fmt::format("no capture that is known: a text that begins with '{}'",
                                  utf8_prefix(line, most_shown))
                    : "no capture that is known");
}

}  // namespace

CaptureFormat capture_format(const std::filesystem::path& path) {
  constexpr std::size_t enough = 65536;
  const std::string head = first_bytes(path, enough);
  if (head.starts_with("SQLite format 3")) return CaptureFormat::nsight_systems;
  refuse_foreign_file(path, head);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (head[first] == '{' || head[first] == '[')) {
    std::vector<std::string> members;
    if (const auto format = json_format(path, members)) return *format;
    refuse(path, fmt::format("JSON, but no capture: its members are {}",
                             printable(fmt::format("{}", fmt::join(members, ", ")))));
  }
  if (is_trace_csv(head)) return CaptureFormat::rubato_csv;
  if (std::ranges::any_of(split(head, '\n'), is_nsight_compute_header))
    return CaptureFormat::nsight_compute;
  if (begins_as_chakra_protobuf(head)) return CaptureFormat::chakra_protobuf;
  for (const OtherTable& other : other_tables) {
    if (head.find(other.in_header) != std::string::npos)
      throw DataError(fmt::format("{}: is {}", printable(path.string()), other.what),
                      {.in = {}, .hint = std::string(other.hint)});
  }
  refuse_unknown(path, head);
}

Trace import_trace(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string text = read_expanded(path, options.max_expanded_bytes);
  return capture_format(path) == CaptureFormat::rubato_csv ? parse_trace_csv(text, path.string())
                                                           : parse_trace_json(text, path.string());
}

namespace {

// Starts and durations in different units give launches that no stream could run, or kernels that
// no GPU could.
Capture of_one_unit(Capture capture) {
  constexpr std::size_t few = 16;
  constexpr double most_overlap = 20.0;      // of several queues that are recorded as one stream
  constexpr std::int64_t shortest_ns = 250;  // a third of what an empty kernel takes
  struct Sums {
    std::size_t launches = 0;
    double busy_ns = 0.0;
    std::int64_t first_ns = 0, last_ns = 0;
  };
  std::vector<Sums> streams(capture.streams.size());
  std::vector<std::int64_t> lasting_ns;
  for (const CapturedLaunch& launch : capture.launches) {
    Sums& own = streams[launch.stream];
    if (own.launches++ == 0) own.first_ns = launch.start_ns;
    own.busy_ns += static_cast<double>(launch.duration_ns);
    own.last_ns = launch.start_ns;
    const KernelClass kind = capture.kernels[index(launch.kernel)].kind;
    if (launch.duration_ns > 0 && kind != KernelClass::memcpy && kind != KernelClass::memset)
      lasting_ns.push_back(launch.duration_ns);
  }
  const auto refuse_units = [&](const std::string& what, std::string_view hint) {
    throw DataError(fmt::format("{}: {}; starts and durations have different units",
                                printable(capture.name), what),
                    {.in = {}, .hint = std::string(hint)});
  };
  for (const Sums& one : streams) {
    const double from_first_to_last_ns =
        static_cast<double>(one.last_ns) - static_cast<double>(one.first_ns);
    if (one.launches >= few && one.busy_ns > most_overlap * from_first_to_last_ns)
      refuse_units(fmt::format("the {} launches of a stream take {} and begin within {}",
                               one.launches, time_text(one.busy_ns * s_per_ns),
                               time_text(from_first_to_last_ns * s_per_ns)),
                   "are durations in ns where they should be in us? divide them by 1000");
  }
  if (lasting_ns.size() < few) return capture;
  const auto middle = lasting_ns.begin() + static_cast<std::ptrdiff_t>(lasting_ns.size() / 2);
  std::ranges::nth_element(lasting_ns, middle);
  if (*middle < shortest_ns)
    refuse_units(fmt::format("half of its kernels last at most {}, and no GPU runs one in less "
                             "than 700 ns",
                             time_text(static_cast<double>(*middle) * s_per_ns)),
                 "are durations in ms where they should be in us? multiply them by 1000");
  return capture;
}

Capture import_as_recorded(const std::filesystem::path& path, const ImportOptions& options) {
  switch (capture_format(path)) {
    case CaptureFormat::kineto: return of_one_unit(import_kineto(path, options));
    case CaptureFormat::nsight_compute: return import_nsight_compute(path, options);
    case CaptureFormat::chakra_protobuf: return import_chakra_protobuf(path, options);
    case CaptureFormat::chakra_json: return import_chakra_json(path, options);
    case CaptureFormat::pipeline_passes: return import_pipeline_passes(path, options);
    case CaptureFormat::rubato_capture: return load_capture(path, options);
    case CaptureFormat::rubato_json:
    case CaptureFormat::rubato_csv:
      return as_capture(import_trace(path, options), MissingTimes::zero);
    case CaptureFormat::nsight_systems: break;
  }
  return of_one_unit(import_nsight_systems(path, options));
}

// Whoever gave --partial is not told to give it.
Capture import_what_there_is(const std::filesystem::path& path, const ImportOptions& options) {
  if (!options.partial) return import_as_recorded(path, options);
  try {
    return import_as_recorded(path, options);
  } catch (const DataError& error) {
    if (error.report().find("--partial") == std::string::npos) throw;
    throw DataError(error.what(), {.in = {},
                                   .hint = "--partial finds nothing in it that can be used; copy "
                                           "or record the file again"});
  }
}

}  // namespace

Capture import_capture(const std::filesystem::path& path, const ImportOptions& options) {
  Capture capture = import_what_there_is(path, options);
  align_device_clocks(capture);
  guess_kernel_work(capture);
  find_periodic_steps(capture);
  return options.phase.empty() ? capture : only_phase(capture, options.phase);
}

}  // namespace rubato
