#pragma once
// Captures that are named together: the ranks of one run.

#include <string>
#include <vector>

namespace rubato {

/// Files that a pattern like 'rank*.json.gz' names, in order of their names (numbers by value);
/// what is no pattern is a file. @throws UsageError for a pattern that names none
[[nodiscard]] std::vector<std::string> files_of_patterns(const std::vector<std::string>& patterns);

/// A file to read: "-" is standard input, kept in a file until the program ends, whose name ends as
/// its content does (.json, .csv, .gz), since readers look at names and read twice.
/// @throws IoError if there is nothing to read, or no room for it
[[nodiscard]] std::string input_file(const std::string& word);

}  // namespace rubato
