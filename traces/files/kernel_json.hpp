#pragma once
// What the JSON forms of traces and captures share: kernels, and names of enumerations.

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json.hpp"
#include "common/suggest.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// @throws DataError with the nearest known name
template <class Enum>
[[nodiscard]] Enum read_name(const JsonNode& node) {
  const std::string text = node.text();
  if (const auto value = from_name<Enum>(text)) return *value;
  node.fail(fmt::format("'{}' is not known{}", text, did_you_mean(text, all_names<Enum>())));
}

/// @throws DataError for what is no whole number below 2^32
[[nodiscard]] std::uint32_t read_count_32(const JsonNode& node);

/// A kernel as docs/traces.md describes it.
/// @throws DataError naming the first wrong, missing or unknown entry
[[nodiscard]] Kernel read_kernel(const JsonNode& node);

/// The same written; what is unknown is left out.
[[nodiscard]] nlohmann::ordered_json kernel_json(const Kernel& kernel);

}  // namespace rubato
