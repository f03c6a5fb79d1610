#pragma once
// Kernels, which the JSON forms of traces and captures share.

#include <cstdint>

#include <nlohmann/json.hpp>

#include "traces/files/json_names.hpp"

namespace rubato {

/// @throws DataError for what is no whole number below 2^32
[[nodiscard]] std::uint32_t read_count_32(const JsonNode& node);

/// A kernel as docs/traces.md describes it.
/// @throws DataError naming the first wrong, missing or unknown entry
[[nodiscard]] Kernel read_kernel(const JsonNode& node);

/// What read_kernel reads back; keys of unknown values are left out.
[[nodiscard]] nlohmann::ordered_json kernel_json(const Kernel& kernel);

}  // namespace rubato
