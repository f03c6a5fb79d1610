#pragma once
// A validation as one HTML page: predicted over measured, and the errors.

#include <span>
#include <string>

#include "models/validation/errors.hpp"
#include "tools/drawing/answer.hpp"

namespace rubato {

/// Mean and worst errors over all points; nothing without points.
[[nodiscard]] Answer validation_answer(const GpuSpec& spec, std::span<const ValidatedPoint> points);

/// A page that needs nothing else; names from files are escaped.
[[nodiscard]] std::string validation_page(const GpuSpec& spec, const Sweep& sweep,
                                          const ValidationOptions& options,
                                          std::span<const ValidatedPoint> points);

}  // namespace rubato
