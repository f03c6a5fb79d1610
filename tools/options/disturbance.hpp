#pragma once
// Options of captured runs that go differently from the capture: slower and throttled ranks, slow
// links, jitter.

#include <string>
#include <vector>

#include "sim/graph/disturbance.hpp"

namespace rubato {

class CommandLine;

struct DisturbanceOptions {
  std::vector<std::string> stragglers, slow_links;  ///< "RANK=FACTOR"
  std::vector<std::string> throttles;               ///< "RANK=1110MHz", "RANK=250W"
  double jitter_frac = 0.0;
};

/// Adds --straggler, --throttle, --slow-link and --jitter. `options` must outlive parsing.
void add_disturbance_options(CommandLine& app, DisturbanceOptions& options);

/// @throws UsageError if one of them, --comm-sms or --own-steps was given: they mean nothing here
void refuse_options_of_captures(const CommandLine& app);

/// @throws UsageError for what is not "RANK=FACTOR", of throttles "RANK=CLOCK" or "RANK=POWER"
[[nodiscard]] GraphDisturbance disturbance_of(const DisturbanceOptions& options);

}  // namespace rubato
