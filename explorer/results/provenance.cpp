#include "explorer/results/provenance.hpp"

#include <chrono>
#include <cstdint>

#include <fmt/chrono.h>
#include <unistd.h>

#include "common/version.hpp"

namespace rubato {

std::string now_utc() {
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count();
  constexpr std::int64_t ms_per_s = 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms % ms_per_s);
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  name.resize(name.find('\0'));
  return name;
}

std::string program_with_revision() {
  return fmt::format("{} {}", program_version(), source_revision());
}

}  // namespace rubato
