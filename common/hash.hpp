#pragma once
// Content hashes for provenance: equal bytes, equal hash, on every machine.

#include <string>
#include <string_view>

namespace rubato {

/// 128-bit XXH3 of the bytes as 32 lower-case hexadecimal digits. Detects
/// change, not tampering: it is not a cryptographic hash.
[[nodiscard]] std::string content_hash(std::string_view bytes);

}  // namespace rubato
