#include "traces/import.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

std::string_view name_of(CaptureFormat value) noexcept {
  switch (value) {
    case CaptureFormat::kineto: return "Kineto";
    case CaptureFormat::nsight_systems: break;
  }
  return "Nsight Systems SQLite";
}

CaptureFormat capture_format(const std::filesystem::path& path) {
  constexpr std::size_t enough = 4096;
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
  if (first != std::string::npos && (head[first] == '{' || head[first] == '['))
    return CaptureFormat::kineto;
  throw DataError(fmt::format("{}: is no capture that is known", shown),
                  {.in = {},
                   .hint = "expected a PyTorch profiler trace (.json, .json.gz) or an SQLite "
                           "export of Nsight Systems"});
}

Capture import_capture(const std::filesystem::path& path, const ImportOptions& options) {
  switch (capture_format(path)) {
    case CaptureFormat::kineto: return import_kineto(path, options);
    case CaptureFormat::nsight_systems: break;
  }
  return import_nsight_systems(path, options);
}

}  // namespace rubato
