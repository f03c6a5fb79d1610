#pragma once
// Files that a command line names.

#include <string>
#include <vector>

namespace rubato {

/// A file to read. "-" is standard input, which is kept in a file until the program ends, since
/// readers look at names and read twice. The file's extension fits its content (.json, .csv, .gz).
/// @throws IoError if there is nothing to read, or no room for it
[[nodiscard]] std::string input_file(const std::string& word);

/// The text for people: "standard input" stands in place of the name of that file.
[[nodiscard]] std::string with_input_named(std::string text);
[[nodiscard]] std::vector<std::string> with_inputs_named(std::vector<std::string> names);

}  // namespace rubato
