#pragma once
// Files that a command line names.

#include <string>

namespace rubato {

/// A file to read: "-" is standard input, kept in a file until the program ends, whose name ends as
/// its content does (.json, .csv, .gz), since readers look at names and read twice.
/// @throws IoError if there is nothing to read, or no room for it
[[nodiscard]] std::string input_file(const std::string& word);

}  // namespace rubato
