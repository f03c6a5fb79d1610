#pragma once
// The option of runs that go differently from what was captured or modelled: slower and throttled
// ranks, slow links, jitter.

#include <string>
#include <vector>

#include "sim/graph/disturbance.hpp"

namespace rubato {

class CommandLine;

/// Adds --disturb. `texts` must outlive parsing.
void add_disturb_option(CommandLine& app, std::vector<std::string>& texts);

/// @throws UsageError for what is not "RANK:kernels*FACTOR", "RANK:network*FACTOR", "RANK:1110MHz",
///         "RANK:250W", "RANK:power*FACTOR" or "jitter=SPREAD"
[[nodiscard]] GraphDisturbance disturbance_of(const std::vector<std::string>& texts);

}  // namespace rubato
