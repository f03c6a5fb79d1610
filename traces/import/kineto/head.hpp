#pragma once
// What a Kineto file says beside its events: GPUs, base of time, ranks.

#include <string_view>

#include "traces/import/kineto/events.hpp"

namespace rubato::kineto {

/// Whether a member of the root object says something that matters here.
[[nodiscard]] bool is_head_member(std::string_view key);

/// Fills in epoch_ns, devices, rank, world_size or groups.
/// @param value  JSON, followed by at least json_padding readable bytes
/// @throws DataError if it is no JSON; what is not as expected is skipped
void read_head_member(std::string_view key, std::string_view value, Events& events);

/// The value as a rank or a number of ranks; nothing if it is below 0 or above ten million.
[[nodiscard]] std::optional<std::uint32_t> rank_of(std::optional<std::int64_t> value);

}  // namespace rubato::kineto
