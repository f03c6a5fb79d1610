#pragma once
// Perseus, SOSP 2024: savings of pipelines, published and ours.

#include "common/run_context.hpp"
#include "tools/commands/published/section.hpp"

namespace rubato {

/// @throws InterruptedError; what planning throws
[[nodiscard]] Reproduction reproduce_perseus2024(const RunContext& context);

}  // namespace rubato
