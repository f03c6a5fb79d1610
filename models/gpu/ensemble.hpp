#pragma once
// The ensemble of a spec: models beside its own, drawn at random around its fit.

#include <cstddef>

#include "models/gpu/spec.hpp"

namespace rubato {

/// The spec moved by draw `member` of its ensemble; past the last draw the first follows. The spec
/// itself if it has no ensemble.
[[nodiscard]] GpuSpec ensemble_member(const GpuSpec& spec, std::size_t member);

}  // namespace rubato
