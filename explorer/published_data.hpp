#pragma once
// Published files that are compiled into the program.

#include <string_view>

namespace rubato {

/// Text of "kernels" and "pass_forward_sweep" of models/data/measured/spaan2026, "overlap" of
/// kareus_a100_overlap, or of a stage profile in docs/examples by its name without extension.
/// @throws std::out_of_range if there is none: names are constants
[[nodiscard]] std::string_view published_data(std::string_view name);

}  // namespace rubato
