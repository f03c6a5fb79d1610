#pragma once
// What was built, for --version and for the provenance of results.

#include <string_view>

namespace rubato {

/// "0.1.0", from the build system.
[[nodiscard]] std::string_view program_version() noexcept;

/// Commit and state of the source tree at configure time, e.g. "1a2b3c4d" or
/// "1a2b3c4d-dirty"; "unknown" outside a checkout.
[[nodiscard]] std::string_view source_revision() noexcept;

/// Compiler, its version and the build type, e.g. "GNU 12.2.0, Release".
[[nodiscard]] std::string_view build_info() noexcept;

}  // namespace rubato
