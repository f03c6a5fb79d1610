#pragma once
// Captures that are named together: the ranks of one run.

#include <string>
#include <vector>

namespace rubato {

/// Files that a pattern like 'rank*.json.gz' names, in order of their names (numbers by value);
/// what is no pattern is a file. @throws UsageError for a pattern that names none
[[nodiscard]] std::vector<std::string> files_of_patterns(const std::vector<std::string>& patterns);

}  // namespace rubato
