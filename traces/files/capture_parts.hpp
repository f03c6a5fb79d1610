#pragma once
// The lists of a capture's JSON form (docs/captures.md), each read by itself. Positions in other
// lists are not checked here, since those lists may come later in the file.

#include <vector>

#include "common/json.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// Launches of one block of columns.
struct LaunchColumns {
  std::vector<CapturedLaunch> launches;  ///< start_ns from the file's origin
  bool own_pass = false;                 ///< else a launch has the pass of its kernel
};

/// Each reads one part. @throws DataError naming the place in the file
[[nodiscard]] CaptureDevice read_device(const JsonNode& node);
[[nodiscard]] CaptureStream read_stream(const JsonNode& node);
[[nodiscard]] CaptureGroup read_group(const JsonNode& node);
[[nodiscard]] CapturedCollective read_collective(const JsonNode& node);
[[nodiscard]] LaunchColumns read_launches(const JsonNode& node);
[[nodiscard]] std::vector<CapturedCall> read_calls(const JsonNode& node);

}  // namespace rubato
