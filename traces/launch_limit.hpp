#pragma once
// Repeats are a number in a file: few lines may stand for any number of launches. What lists each
// of them takes some hundred bytes a launch.

#include <cstdint>
#include <span>

#include "traces/trace.hpp"

namespace rubato {

inline constexpr std::uint64_t most_listed_launches = 5'000'000;

/// Launches of one iteration, repeats counted.
[[nodiscard]] std::uint64_t count_launches(std::span<const Segment> segments);

/// Called by launches() and whatever else lists launches one by one.
/// @throws DataError if there are more than most_listed_launches
void refuse_to_list_too_many(std::span<const Segment> segments);

}  // namespace rubato
