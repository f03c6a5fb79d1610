#pragma once
// The models a spec carries beside itself: draws around its fit.

#include <cstddef>

#include "models/gpu/spec.hpp"

namespace rubato {

/// The spec moved by one draw of its ensemble, in turn; the spec itself if it has none.
[[nodiscard]] GpuSpec ensemble_member(const GpuSpec& spec, std::size_t member);

}  // namespace rubato
