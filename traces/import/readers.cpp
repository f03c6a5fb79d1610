#include "traces/import/readers.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/files/capture_json.hpp"
#include "traces/files/trace_csv.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/device_clock.hpp"
#include "traces/import/kernel_work.hpp"
#include "traces/import/step_period.hpp"
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

// A length, then metadata: a version (field 1) or attributes (field 2).
bool is_protobuf(std::string_view head) {
  constexpr unsigned char more = 0x80;
  std::size_t at = 0;
  while (at < head.size() && at < 4 && (static_cast<unsigned char>(head[at]) & more) != 0) ++at;
  return at + 1 < head.size() && head[at] != '\0' && (head[at + 1] == 0x0a || head[at + 1] == 0x12);
}

std::string read_raw(const std::filesystem::path& path, std::size_t count) {
  std::string bytes(count, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

// The text behind "key" and its colon, or nothing.
std::string_view value_of(std::string_view head, std::string_view key) {
  const std::size_t found = head.find(fmt::format("\"{}\"", key));
  if (found == std::string_view::npos) return {};
  const std::size_t colon = head.find_first_not_of(" \t\r\n", found + key.size() + 2);
  if (colon == std::string_view::npos || head[colon] != ':') return {};
  const std::size_t value = head.find_first_not_of(" \t\r\n", colon + 1);
  return value == std::string_view::npos ? std::string_view() : head.substr(value);
}

CaptureFormat json_format(std::string_view head) {
  const auto has = [&](std::string_view part) { return head.find(part) != std::string::npos; };
  // Chakra's schema is text, Kineto has a schemaVersion; ours is a number and comes first.
  const std::string_view schema = value_of(head, "schema");
  if (!schema.empty() && schema.front() >= '0' && schema.front() <= '9' && !has("\"traceEvents\""))
    return value_of(head, "kind").starts_with("\"capture\"") ? CaptureFormat::rubato_capture
                                                             : CaptureFormat::rubato_json;
  if (has("\"fwd_start\"") && !has("\"traceEvents\"")) return CaptureFormat::pipeline_passes;
  const bool chakra = has("\"workload_graph\"") || has("chakra") || has("pytorch|profiler|exec");
  return chakra ? CaptureFormat::chakra_json : CaptureFormat::kineto;
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

}  // namespace

CaptureFormat capture_format(const std::filesystem::path& path) {
  constexpr std::size_t enough = 65536;
  const std::string head = first_bytes(path, enough);
  const std::string shown = printable(path.string());
  if (head.starts_with("SQLite format 3")) {
    if (read_raw(path, 2) == "\x1f\x8b")
      throw DataError(fmt::format("{}: is a packed SQLite file", shown),
                      {.in = {}, .hint = "unpack it with gunzip first"});
    return CaptureFormat::nsight_systems;
  }
  if (path.extension() == ".nsys-rep") {
    throw DataError(
        fmt::format("{}: is a report of Nsight Systems in its own format", shown),
        {.in = {},
         .hint = fmt::format("run 'nsys export --type sqlite {}' and import the result", shown)});
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (head[first] == '{' || head[first] == '['))
    return json_format(head);
  if (is_trace_csv(head)) return CaptureFormat::rubato_csv;
  if (head.starts_with("\"ID\",") || head.find("\n\"ID\",") != std::string::npos)
    return CaptureFormat::nsight_compute;
  if (is_protobuf(head)) return CaptureFormat::chakra_protobuf;
  throw DataError(fmt::format("{}: is no capture that is known", shown),
                  {.in = {},
                   .hint = "expected a PyTorch profiler trace (.json, .json.gz), an SQLite "
                           "export of Nsight Systems, a CSV of Nsight Compute, a Chakra "
                           "execution trace (.et, .json) or a file of Rubato"});
}

Trace import_trace(const std::filesystem::path& path, const ImportOptions& options) {
  const std::string text = read_expanded(path, options.max_expanded_bytes);
  return capture_format(path) == CaptureFormat::rubato_csv ? parse_trace_csv(text, path.string())
                                                           : parse_trace_json(text, path.string());
}

namespace {

Capture import_as_recorded(const std::filesystem::path& path, const ImportOptions& options) {
  switch (capture_format(path)) {
    case CaptureFormat::kineto: return import_kineto(path, options);
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
  return import_nsight_systems(path, options);
}

}  // namespace

Capture import_capture(const std::filesystem::path& path, const ImportOptions& options) {
  Capture capture = import_as_recorded(path, options);
  align_device_clocks(capture);
  guess_kernel_work(capture);
  find_periodic_steps(capture);
  return capture;
}

}  // namespace rubato
