#pragma once
// Explorations of captured runs as tables besides that of plans.

#include "explorer/results/capture_rows.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// Those in which ranks waited longest first.
[[nodiscard]] OutputTable collectives_table(const GraphExploration& found);
/// Numbers of SMs that were tried, as captured first; empty if none were asked for.
[[nodiscard]] OutputTable comm_sms_table(const GraphExploration& found);

}  // namespace rubato
