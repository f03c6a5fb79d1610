#pragma once
// Figures 3 and 5 of arXiv 2601.08539 beside ours.

#include "explorer/exploration.hpp"
#include "tools/commands/published/section.hpp"

namespace rubato {

/// The forward pass at all clock pairs. @param blind  with the spec fitted without Table 1
[[nodiscard]] PublishedSection spaan2026_figure3(const ExplorationInput& input,
                                                 const ExplorationInput& blind);

/// Time and energy of each kernel: default, least and most over a grid.
[[nodiscard]] PublishedSection spaan2026_figure5(const ExplorationInput& input,
                                                 const ClockGrid& grid);

}  // namespace rubato
