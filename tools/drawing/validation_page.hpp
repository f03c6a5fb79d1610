#pragma once
// A validation as one HTML page: predicted over measured, and the errors.

#include <span>
#include <string>

#include "models/validation/errors.hpp"

namespace rubato {

/// A page that needs nothing else; names from files are escaped.
[[nodiscard]] std::string validation_page(const GpuSpec& spec, const Sweep& sweep,
                                          const ValidationOptions& options,
                                          std::span<const ValidatedPoint> points);

}  // namespace rubato
