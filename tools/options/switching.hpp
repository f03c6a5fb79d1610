#pragma once
// The option that says what a change of clock takes.

#include <string>

#include "sim/switch_model.hpp"

namespace rubato {

class CommandLine;

/// Adds --switching. `text` must outlive parsing. @param fallback  what holds without it
void add_switching_option(CommandLine& app, std::string& text,
                          const std::string& fallback = "spec");

/// Whether the text, which may be empty, takes values of a GPU spec.
[[nodiscard]] bool asks_for_spec(const std::string& text);

/// "free", "spec", "spec,dwell=1s" or "latency=22ms,stall=1ms". A stall that is given without a
/// latency is the latency too. Empty: changes are free.
/// @throws UsageError naming the wrong value
[[nodiscard]] SwitchModel switch_model(const std::string& text, const GpuSpec& spec);

}  // namespace rubato
