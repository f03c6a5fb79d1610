#pragma once
// Changes of clock that take time, in captured runs.

#include <string>

#include "explorer/graph/exploration.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// What plans take with their changes of clock counted.
[[nodiscard]] OutputTable counted_changes_table(const GraphExploration& found);

/// What the table counts, in words.
[[nodiscard]] std::string counted_changes_note(const SwitchModel& switching);

}  // namespace rubato
