#pragma once
// Files that no reader takes, known by their first bytes: archives, pages, pointers, pickles.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace rubato {

struct ForeignFile {
  std::string_view what;  ///< "a tar archive"
  std::string hint;       ///< what to do with it
};

/// What a file is, if its first bytes or its name tell.
/// @param head  the first bytes of its content, inflated if it is gzip
[[nodiscard]] std::optional<ForeignFile> foreign_file(const std::filesystem::path& path,
                                                      std::string_view head);

/// @throws DataError that says what the file is, if foreign_file() knows
void refuse_foreign_file(const std::filesystem::path& path, std::string_view head);

}  // namespace rubato
