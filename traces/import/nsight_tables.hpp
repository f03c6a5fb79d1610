#pragma once
// The rows of an Nsight Systems export, as far as they matter here, before they are linked.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/host_calls.hpp"
#include "traces/import/readers.hpp"

namespace rubato::nsight {

/// What a device did: a kernel, a copy or a fill.
struct Work {
  Kernel kernel;
  std::uint32_t device = 0;
  std::int64_t stream = 0, start_ns = 0, end_ns = 0;
  std::optional<std::int64_t> launch_ns, thread;  ///< of the call behind it
  std::optional<std::int64_t> process, correlation;
  std::int64_t context = 0;
  CopyEnds ends;
};

/// A call of the runtime. Processes and threads are global ids: the process of a thread is the same
/// number with its last 24 bits cleared.
struct HostCall {
  std::int64_t thread, correlation, start_ns, end_ns;
  std::optional<CallKind> kind;  ///< nothing: of interest only if it launched something
};

/// What is said of a synchronising call.
struct Synchronization {
  std::int64_t process, correlation, context, stream;
  std::int64_t event_sync_id;  ///< counts records of the process; 0: no event
};

/// An event record as the device saw it; in few files.
struct EventRecord {
  std::int64_t process, correlation, context, stream, event_sync_id;
};

/// The process of a thread, or of a process itself.
[[nodiscard]] constexpr std::int64_t process_of(std::int64_t global_id) noexcept {
  return global_id & ~std::int64_t{0xffffff};
}

/// A span of the host that NVTX marks.
struct NvtxRange {
  std::int64_t thread, start_ns, end_ns;
  std::string text;
};

struct Tables {
  std::optional<std::int64_t> epoch_ns;  ///< UTC of time 0, ns since 1970
  std::vector<NamedDevice> gpus;         ///< of the host, whether they ran anything or not
  std::vector<Work> work;                ///< at least one
  std::vector<NvtxRange> ranges;         ///< by thread, then start; the longer one first
  std::vector<HostCall> calls;           ///< by start
  std::vector<Synchronization> synchronizations;
  std::vector<EventRecord> records;
  /// Priorities of streams by context and number; nothing where processes differ.
  std::map<std::pair<std::int64_t, std::int64_t>, std::optional<std::int32_t>> priorities;
};

/// Reads the tables of an export.
/// @param builder  told what is left out
/// @throws DataError naming the file, and the table or column
/// @throws UsageError with SQLite's message if a table lacks a column
[[nodiscard]] Tables read_tables(const std::filesystem::path& path, const ImportOptions& options,
                                 CaptureBuilder& builder);

}  // namespace rubato::nsight
