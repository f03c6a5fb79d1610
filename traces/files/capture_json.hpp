#pragma once
// Rubato's own form of a capture: JSON with a schema number, docs/captures.md. It holds everything
// a replay needs, with times in whole nanoseconds.

#include <cstdint>
#include <filesystem>
#include <string>

#include "traces/capture.hpp"
#include "traces/import_options.hpp"

namespace rubato {

inline constexpr std::uint64_t capture_schema = 1;

/// The text of a capture; load_capture gives back an equal one. Needs about as much memory as
/// the capture itself.
[[nodiscard]] std::string capture_json(const Capture& capture);

/// capture_json into a file, packed if its name ends in .gz.
/// @throws IoError
void save_capture(const Capture& capture, const std::filesystem::path& path);

/// Reads such a file, plain or gzip, part by part: the text is never in memory as a whole.
/// @throws IoError; DataError naming the first wrong, missing or unknown entry. With
///         options.partial a file that is cut off or damaged gives what comes before, and
///         Capture::left_out says so
[[nodiscard]] Capture load_capture(const std::filesystem::path& path,
                                   const ImportOptions& options = {});

}  // namespace rubato
