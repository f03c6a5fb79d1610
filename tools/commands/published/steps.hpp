#pragma once
// Published times of whole training steps beside modelled ones.

#include "tools/commands/published/section.hpp"

namespace rubato {

/// Steps of which a source gives every shape, on an A100-SXM4-80GB; nothing of them was fitted.
[[nodiscard]] Reproduction training_steps();

}  // namespace rubato
