#pragma once
// What the tables of an Nsight Systems export say, as far as it matters here, before it is linked.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/readers.hpp"

namespace rubato::nsight {

/// What a device did: a kernel, a copy or a fill.
struct Work {
  Kernel kernel;
  std::uint32_t device = 0;
  std::int64_t stream = 0, start_ns = 0, end_ns = 0;
  std::optional<std::int64_t> launch_ns, thread;  ///< of the call behind it
};

/// A span of the host that NVTX marks.
struct Range {
  std::int64_t thread, start_ns, end_ns;
  std::string text;
};

struct Tables {
  std::optional<std::int64_t> epoch_ns;  ///< of time 0
  std::map<std::uint32_t, std::string> gpu_names;
  std::vector<Work> work;     ///< at least one
  std::vector<Range> ranges;  ///< by thread, then start; the longer one first
};

/// @param builder  told what is left out
/// @throws DataError naming the file, and the table or column
/// @throws UsageError with SQLite's message if a table lacks a column
[[nodiscard]] Tables read_tables(const std::filesystem::path& path, const ImportOptions& options,
                                 CaptureBuilder& builder);

}  // namespace rubato::nsight
