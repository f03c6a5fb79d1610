#pragma once
// The shipped specs against the measurements they were fitted to.

#include "tools/commands/published/section.hpp"

namespace rubato {

/// Errors on points that fits had not seen, as the specs carry them.
[[nodiscard]] Reproduction held_out_errors();

}  // namespace rubato
