#pragma once
// Brings the runs of other result databases into one.

#include <cstdint>
#include <filesystem>

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

}  // namespace rubato
