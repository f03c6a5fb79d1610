#pragma once
// What stands below an exploration's tables.

#include <string>

#include "explorer/exploration.hpp"

namespace rubato {

/// What a reader must know beside the numbers: marks, and which errors the intervals cover.
[[nodiscard]] std::string exploration_notes(const ExplorationInput& input,
                                            const Exploration& found);

}  // namespace rubato
