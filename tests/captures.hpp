#pragma once
// Captures of others, in tests/captures.

#include <filesystem>
#include <string>

#include "common/byte_source.hpp"
#include "common/file.hpp"
#include "tests/paths.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {

/// A file or folder below tests/captures. A database that is packed there is unpacked once.
inline std::filesystem::path captured(const std::string& name) {
  const std::filesystem::path path = source_dir() / "tests/captures" / name;
  if (path.extension() != ".sqlite") return path;
  static const TemporaryFolder folder;
  const std::filesystem::path unpacked = folder / path.filename().string();
  constexpr std::uint64_t most_bytes = 1 << 24;
  if (!std::filesystem::exists(unpacked))
    write_file(unpacked.string(), read_expanded(path.string() + ".gz", most_bytes));
  return unpacked;
}

}  // namespace rubato
