#pragma once
// Kareus (OSDI 2026): an attention block beside an all-reduce, measured, and what the model says of
// settings that its fit has not seen.

#include "tools/commands/published/section.hpp"

namespace rubato {

/// Errors of time and energy, cross-validated over the shipped measurements.
[[nodiscard]] Reproduction reproduce_kareus2026();

}  // namespace rubato
