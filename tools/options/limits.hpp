#pragma once
// Options that say when a search may end early.

#include <optional>

namespace rubato {

class CommandLine;

struct LimitOptions {
  std::optional<double> time_s, gap_pct;
};

void add_limit_options(CommandLine& app, LimitOptions& options);

}  // namespace rubato
