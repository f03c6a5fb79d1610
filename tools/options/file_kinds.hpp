#pragma once
// Which kind of file somebody gave where a command expected another.

#include <span>
#include <string>
#include <string_view>

namespace rubato {

/// What an error is that a file of another kind than the command reads has caused, and what to do
/// with such a file.
struct OtherKind {
  std::string what, hint;  ///< empty: it was not that
};

/// @param words  of the command line, the program's name first
/// @param error  that names the file at its beginning
[[nodiscard]] OtherKind other_kind(std::span<const std::string> words, std::string_view error);

}  // namespace rubato
