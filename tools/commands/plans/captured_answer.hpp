#pragma once
// What explore of a captured run answers, in words: what to set, and what that saves.

#include <string>
#include <string_view>

#include "explorer/graph/exploration.hpp"

namespace rubato {

/// The best clock for all and the best plan of several clocks, both of the least slack asked for,
/// as rubato export chooses; the best for each other slack in a line. Then the plan of least cost,
/// where that was asked for.
/// @param db  see play_lines
[[nodiscard]] std::string captured_answer(const GraphExploration& found, std::string_view db);

}  // namespace rubato
