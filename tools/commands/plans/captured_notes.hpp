#pragma once
// Marks beside the plans of a captured run.

#include <string>

#include "explorer/graph/exploration.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// One row per plan and mark, with its reason; those of the default clocks first.
[[nodiscard]] OutputTable captured_notes_table(const GraphExploration& found);

/// One line for each kind of mark.
[[nodiscard]] std::string captured_notes_text(const GraphExploration& found);

}  // namespace rubato
