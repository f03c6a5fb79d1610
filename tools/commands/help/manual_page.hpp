#pragma once
// Manual pages in the form of man(7).

#include <string>

#include "tools/commands/help/command_help.hpp"

namespace rubato {

/// "rubato" for the program, "rubato-sweep" for one of its commands.
[[nodiscard]] std::string manual_name(const CommandHelp& command);

/// The page of the program itself, or of one of its commands with everything below it.
/// @param root     what the page refers to as see also
/// @param version  of the program
[[nodiscard]] std::string manual_page(const CommandHelp& root, const CommandHelp& command,
                                      const std::string& version);

}  // namespace rubato
