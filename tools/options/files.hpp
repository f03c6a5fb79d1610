#pragma once
// Files that a command line names.

#include <string>
#include <vector>

namespace rubato {

/// A file to read: "-" is standard input, kept in a file until the program ends, whose name ends as
/// its content does (.json, .csv, .gz), since readers look at names and read twice.
/// @throws IoError if there is nothing to read, or no room for it
[[nodiscard]] std::string input_file(const std::string& word);

/// The text with "standard input" in place of the name of that file, for whoever reads it.
[[nodiscard]] std::string with_input_named(std::string text);
[[nodiscard]] std::vector<std::string> with_inputs_named(std::vector<std::string> names);

}  // namespace rubato
