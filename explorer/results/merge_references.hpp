#pragma once
// Whether rows that are merged refer to rows that are there (foreign keys). Whole tables are asked,
// since a look-up for each row takes as long as writing it.

#include <filesystem>
#include <string_view>

#include "common/sqlite.hpp"

namespace rubato {

/// @throws DataError always: rows of `table` in `file` refer to rows that are not there
[[noreturn]] void refuse_rows(const std::filesystem::path& file, std::string_view table);

/// Checks each merged table of the database attached as `source`, without the target.
/// @param file  for messages
/// @throws DataError naming the first table with a row whose reference is not there
void refuse_broken_references(const SqlConnection& target, const std::filesystem::path& file);

/// Checks that no unit of the source lacks cells.
/// @throws DataError as above
void refuse_missing_cells(const SqlConnection& target, const std::filesystem::path& file);

/// Checks runs that source and target both have. New plans of such a run refer to the units and
/// clocks in the target, so each unit and clock of the source must be there.
/// @param target  with the maps of a merge
/// @throws DataError as above
void refuse_rows_of_others(const SqlConnection& target, const std::filesystem::path& file);

}  // namespace rubato
