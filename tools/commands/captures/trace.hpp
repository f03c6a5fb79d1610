#pragma once
// What the parts of rubato trace share.

#include <string>

#include "tools/commands/command.hpp"
#include "traces/trace.hpp"

namespace rubato {

class CommandLine;

/// CSV where the path ends in .csv, else JSON.
[[nodiscard]] std::string as_file(const Trace& trace, const std::string& path);

/// A line per segment and the sums of what is known.
[[nodiscard]] std::string trace_summary(const Trace& trace);

/// rubato trace gen
void setup_trace_gen(CommandLine& app, Action& action);

/// rubato trace scale
void setup_trace_scale(CommandLine& app, Action& action);

/// rubato trace import
void setup_trace_import(CommandLine& app, Action& action);

}  // namespace rubato
