#pragma once
// Headings of rubato explore --help.

#include "tools/command_line.hpp"

namespace rubato {

/// @param app  with all options of explore
void head_explore_options(CommandLine& app);

}  // namespace rubato
