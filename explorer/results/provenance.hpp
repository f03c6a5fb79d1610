#pragma once
// When and where a result was made.

#include <string>

namespace rubato {

/// ISO 8601 in UTC, to the second. Only a label: nothing is decided by it, so a clock that jumps
/// does no harm.
[[nodiscard]] std::string now_utc();

/// "unknown" if the system does not say.
[[nodiscard]] std::string host_name();

}  // namespace rubato
