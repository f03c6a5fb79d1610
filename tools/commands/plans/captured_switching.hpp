#pragma once
// Changes of clock that take time, in captured runs: options and what is printed of them.

#include <optional>
#include <string>

#include "explorer/graph/exploration.hpp"
#include "tools/options/switching.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

class CommandLine;

/// Switch options that were given, nothing if none was.
[[nodiscard]] std::optional<SwitchOptions> given_switching(const CommandLine& line,
                                                           const SwitchOptions& options);

/// What changes of clock take: as asked for, else as the spec knows or guesses it.
/// @throws UsageError if options are wrong
[[nodiscard]] SwitchModel captured_switching(const std::optional<SwitchOptions>& options,
                                             const GpuSpec& spec);

/// What plans take with their changes of clock counted.
[[nodiscard]] OutputTable counted_changes_table(const GraphExploration& found);

/// What the table counts, in words.
[[nodiscard]] std::string counted_changes_note(const SwitchModel& switching);

}  // namespace rubato
