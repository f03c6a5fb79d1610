#pragma once
// The next measurement of a captured run, as text and as a table.

#include <optional>
#include <string>

#include "explorer/next_capture.hpp"
#include "sim/graph/graph_model.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// One row for each clock of a second capture; empty without a measurement.
[[nodiscard]] OutputTable next_table(const std::optional<NextMeasurement>& next);

/// Which clock to lock, what it would narrow and what it may add; empty without a measurement.
/// @param model          of the capture there is
/// @param power_is_seen  by a power log of that capture. Else logs beside both captures are named
///                       where the energy is less well known than the time
[[nodiscard]] std::string next_text(const std::optional<NextMeasurement>& next,
                                    const GraphModel& model, bool power_is_seen);

}  // namespace rubato
