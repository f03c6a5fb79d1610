#pragma once
// Scripts that complete commands, options and fixed values in a shell; file names where neither
// fits.

#include <string>

#include "tools/commands/help/command_help.hpp"

namespace rubato {

/// For bash 3.2 and later, to be sourced.
[[nodiscard]] std::string bash_completion(const CommandHelp& root);

/// For zsh: a file `_rubato` on the function path, or sourced after compinit.
[[nodiscard]] std::string zsh_completion(const CommandHelp& root);

/// For fish 3.
[[nodiscard]] std::string fish_completion(const CommandHelp& root);

}  // namespace rubato
