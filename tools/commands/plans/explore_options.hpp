#pragma once
// The options of rubato explore, and which of them a kind of run cannot answer.

#include <string>
#include <string_view>
#include <vector>

#include "tools/command_line.hpp"
#include "tools/commands/explore.hpp"

namespace rubato {

/// `options` must outlive parsing.
void add_explore_options(CommandLine& app, ExploreOptions& options);

/// @param kind  "trace", "table" (of measured cells), "capture" or "stages"
/// @throws UsageError for an option that was given and that the kind cannot answer, with the reason
void refuse_options(const CommandLine& line, std::string_view kind);

/// @throws UsageError for a table of --list that the kind does not have
void check_lists(const std::vector<std::string>& lists, std::string_view kind);

}  // namespace rubato
