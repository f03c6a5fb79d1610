#pragma once
// Whether rows that are merged refer to rows that are there: asked of whole tables, since a look-up
// for each row takes as long as writing it.

#include <filesystem>
#include <string_view>

#include "common/sqlite.hpp"

namespace rubato {

/// @throws DataError: rows of `table` in `file` refer to rows that are not there
[[noreturn]] void refuse_rows(const std::filesystem::path& file, std::string_view table);

/// Of a database attached as `source`, each table that is merged on its own.
/// @param file  for messages
/// @throws DataError naming the first table with a row whose reference is not there
void refuse_broken_references(const SqlConnection& target, const std::filesystem::path& file);

/// Plans of a run that the target knows refer to kernels and clocks that are there: those of the
/// source must be the target's too.
/// @param target  with the maps of a merge
/// @throws DataError as above
void refuse_rows_of_others(const SqlConnection& target, const std::filesystem::path& file);

}  // namespace rubato
