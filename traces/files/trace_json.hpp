#pragma once
// Rubato's own trace format: JSON with a schema number. docs/traces.md.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace rubato {

inline constexpr std::uint64_t trace_schema = 1;

/// @param name  shown in messages
/// @throws DataError naming the first wrong, missing or unknown entry
[[nodiscard]] Trace parse_trace_json(std::string_view text, std::string name);

/// One kernel and one segment per line; parse_trace_json gives back an equal trace.
[[nodiscard]] std::string to_json(const Trace& trace);

/// A shipped trace by name, or a .json or .csv file.
/// @throws UsageError (unknown name, with the nearest), IoError, DataError
[[nodiscard]] Trace load_trace(std::string_view name_or_path);

/// Names of the shipped traces.
[[nodiscard]] std::vector<std::string> shipped_traces();

}  // namespace rubato
