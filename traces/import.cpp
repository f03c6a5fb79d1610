#include "traces/import.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

std::string_view name_of(CaptureFormat value) noexcept {
  switch (value) {
    case CaptureFormat::kineto: return "Kineto";
    case CaptureFormat::nsight_compute: return "Nsight Compute CSV";
    case CaptureFormat::chakra_protobuf: return "Chakra protobuf";
    case CaptureFormat::chakra_json: return "Chakra JSON";
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

}  // namespace

CaptureFormat capture_format(const std::filesystem::path& path) {
  constexpr std::size_t enough = 65536;
  const std::string head = first_bytes(path, enough);
  const std::string shown = printable(path.string());
  if (head.starts_with("SQLite format 3")) return CaptureFormat::nsight_systems;
  if (path.extension() == ".nsys-rep") {
    throw DataError(
        fmt::format("{}: is a report of Nsight Systems in its own format", shown),
        {.in = {},
         .hint = fmt::format("run 'nsys export --type sqlite {}' and import the result", shown)});
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (head[first] == '{' || head[first] == '[')) {
    const auto has = [&](std::string_view part) { return head.find(part) != std::string::npos; };
    const bool chakra = has("\"workload_graph\"") || has("chakra") || has("pytorch|profiler|exec");
    return chakra ? CaptureFormat::chakra_json : CaptureFormat::kineto;
  }
  if (head.starts_with("\"ID\",") || head.find("\n\"ID\",") != std::string::npos)
    return CaptureFormat::nsight_compute;
  if (is_protobuf(head)) return CaptureFormat::chakra_protobuf;
  throw DataError(fmt::format("{}: is no capture that is known", shown),
                  {.in = {},
                   .hint = "expected a PyTorch profiler trace (.json, .json.gz), an SQLite "
                           "export of Nsight Systems, a CSV of Nsight Compute or a Chakra "
                           "execution trace (.et, .json)"});
}

Capture import_capture(const std::filesystem::path& path, const ImportOptions& options) {
  switch (capture_format(path)) {
    case CaptureFormat::kineto: return import_kineto(path, options);
    case CaptureFormat::nsight_compute: return import_nsight_compute(path, options);
    case CaptureFormat::chakra_protobuf: return import_chakra_protobuf(path, options);
    case CaptureFormat::chakra_json: return import_chakra_json(path, options);
    case CaptureFormat::nsight_systems: break;
  }
  return import_nsight_systems(path, options);
}

}  // namespace rubato
