#include "traces/capture.hpp"

#include <algorithm>

namespace rubato {

namespace {

// In the order of the enumerators.
const std::vector<std::string>& call_names() {
  static const std::vector<std::string> list{"launch",       "blocking_copy", "stream_sync",
                                             "device_sync",  "event_sync",    "event_query",
                                             "event_record", "stream_wait"};
  return list;
}

}  // namespace

std::string_view name_of(CallKind value) noexcept {
  return call_names()[static_cast<std::size_t>(value)];
}

template <>
std::optional<CallKind> from_name<CallKind>(std::string_view name) noexcept {
  const auto found = std::ranges::find(call_names(), name);
  if (found == call_names().end()) return std::nullopt;
  return static_cast<CallKind>(found - call_names().begin());
}

template <>
std::span<const std::string> all_names<CallKind>() {
  return call_names();
}

}  // namespace rubato
