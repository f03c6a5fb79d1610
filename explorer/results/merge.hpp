#pragma once
// Brings the runs of other result databases into one.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "common/sqlite.hpp"

namespace rubato {

/// What one source brought.
struct MergeCounts {
  std::int64_t new_runs = 0, known_runs = 0;
  std::int64_t new_units = 0, known_units = 0;
  std::int64_t new_records = 0;  ///< validations and pipelines
};

/// Copies what `target` does not have, in one transaction: merging the same source again adds
/// nothing. Runs of sweeps are known by their setting, other runs by their whole provenance; ids
/// are renumbered, hosts, commands and versions stay as they were.
/// Validations and pipelines are known by all they say.
/// @param target  from open_result_database
/// @throws DataError naming units or settings whose results differ in bits though their hashes are
///         equal; UsageError if source and target are one file; IoError. `target` is then as
///         before.
MergeCounts merge(SqlConnection& target, const std::filesystem::path& target_path,
                  const std::filesystem::path& source);

/// Says in the target what a source brought, if anything.
void record_merge(const SqlConnection& target, const std::filesystem::path& source,
                  const MergeCounts& counts);

/// Where databases are merged into. A file that is not there yet is made beside its place, from a
/// copy of the first source and without waiting for the disk, and appears when all is in it.
class MergeTarget {
 public:
  /// Opens or makes it. @throws IoError, see open_result_database
  explicit MergeTarget(std::filesystem::path path);
  /// Finishes what was merged, if that was not done; errors are lost then.
  ~MergeTarget();
  MergeTarget(const MergeTarget&) = delete;
  MergeTarget& operator=(const MergeTarget&) = delete;

  /// As merge. @throws as merge; what was merged before stays
  MergeCounts take(const std::filesystem::path& source);

  /// All is on the disk, under its name. Nothing is merged after it.
  void finish();

 private:
  MergeCounts take_first(const std::filesystem::path& source);

  std::filesystem::path path_;
  std::filesystem::path made_;  // the file beside, empty: `path_` was there
  std::optional<SqlConnection> connection_;
};

}  // namespace rubato
