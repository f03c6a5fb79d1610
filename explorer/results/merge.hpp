#pragma once
// Brings the runs of other result databases into one.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "common/file.hpp"
#include "common/sqlite.hpp"

namespace rubato {

/// What one source brought.
struct MergeCounts {
  std::int64_t new_runs = 0, known_runs = 0;
  std::int64_t new_plans = 0, known_plans = 0;
  std::int64_t new_measurements = 0;
};

/// Copies what `target` does not have, in one transaction: merging the same source again adds
/// nothing. Row numbers change; hosts, commands and versions stay as they were.
/// What tells that something is there already: the hash of a run, of a question in it, of a
/// measurement.
/// @param target  from open_result_database
/// @throws DataError naming runs or plans whose results differ in bits though their ids are
///         equal, or a table whose rows refer to rows that are not there; UsageError if source and
///         target are one file; IoError. `target` is then as before.
MergeCounts merge(SqlConnection& target, const std::filesystem::path& target_path,
                  const std::filesystem::path& source);

/// Says in the target what a source brought, if anything.
void record_merge(const SqlConnection& target, const std::filesystem::path& source,
                  const MergeCounts& counts);

/// The database that others are merged into. One that is not there yet begins as a copy of the
/// first source, in a file beside its place, and does not wait for the disk. It gets its name when
/// all is in it.
class MergeTarget {
 public:
  /// Opens or makes it. @throws IoError, see open_result_database
  explicit MergeTarget(std::filesystem::path path);
  /// Finishes what was merged, if that was not done; errors are lost then.
  ~MergeTarget();
  MergeTarget(const MergeTarget&) = delete;
  MergeTarget& operator=(const MergeTarget&) = delete;

  /// Merges one source, as merge(). @throws as merge(); what was merged before stays
  MergeCounts take(const std::filesystem::path& source);

  /// Puts all on the disk, under its name. Nothing may be merged after it.
  void finish();

 private:
  void begin_anew();
  MergeCounts take_first(const std::filesystem::path& source);

  std::filesystem::path path_;
  std::optional<TemporaryFile> made_;  // the file beside; none if `path_` was there
  std::optional<SqlConnection> connection_;
};

}  // namespace rubato
