#pragma once
// Names of enumerations in JSON.

#include <string>

#include <fmt/format.h>

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

}  // namespace rubato
