#pragma once
// When and where a result was made.

#include <string>

namespace rubato {

/// ISO 8601 in UTC, to the millisecond. The latest of runs of different kinds is told by it, and
/// nothing else.
[[nodiscard]] std::string now_utc();

/// "unknown" if the system does not say.
[[nodiscard]] std::string host_name();

/// This program as the database has it: "0.1.0 1a2b3c4d".
[[nodiscard]] std::string program_with_revision();

}  // namespace rubato
