#pragma once
// What the JSON forms of traces and captures share: kernels.

#include <cstdint>

#include <nlohmann/json.hpp>

#include "traces/files/json_names.hpp"

namespace rubato {

/// @throws DataError for what is no whole number below 2^32
[[nodiscard]] std::uint32_t read_count_32(const JsonNode& node);

/// A kernel as docs/traces.md describes it.
/// @throws DataError naming the first wrong, missing or unknown entry
[[nodiscard]] Kernel read_kernel(const JsonNode& node);

/// The same written; what is unknown is left out.
[[nodiscard]] nlohmann::ordered_json kernel_json(const Kernel& kernel);

}  // namespace rubato
