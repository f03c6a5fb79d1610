#pragma once
// The next measurement of a captured run, as text and as a table.

#include <optional>
#include <string>

#include "explorer/next_capture.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// One row for each clock of a second capture; empty without a measurement.
[[nodiscard]] OutputTable next_table(const std::optional<NextMeasurement>& next);

/// Which clock to lock, what it would narrow and what it may add; empty without a measurement.
/// @param usual_mhz  of the capture there is
[[nodiscard]] std::string next_text(const std::optional<NextMeasurement>& next, double usual_mhz);

}  // namespace rubato
