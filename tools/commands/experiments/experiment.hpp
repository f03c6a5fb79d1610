#pragma once
// Parts of rubato experiment that have files of their own.

#include "tools/commands/command.hpp"

namespace rubato {

class CommandLine;

Action setup_slurm(CommandLine& app);

}  // namespace rubato
