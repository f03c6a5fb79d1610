#pragma once
// Captures that are named together: the ranks of one run.

#include <string>
#include <vector>

namespace rubato {

/// The files that patterns like 'rank*.json.gz' name. Those of one pattern are in order of their
/// names, numbers by value: rank9 before rank10. What names an existing file is taken as it is.
/// @throws UsageError for a pattern that names no file
[[nodiscard]] std::vector<std::string> files_of_patterns(const std::vector<std::string>& patterns);

}  // namespace rubato
