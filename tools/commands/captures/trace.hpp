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
Action setup_trace_gen(CommandLine& app);

/// rubato trace scale
Action setup_trace_scale(CommandLine& app);

/// rubato trace import
Action setup_trace_import(CommandLine& app);

}  // namespace rubato
