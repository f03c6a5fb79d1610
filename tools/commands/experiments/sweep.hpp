#pragma once
// Parts of rubato sweep that have files of their own.

#include "tools/commands/command.hpp"

namespace rubato {

class CommandLine;

Action setup_sweep_slurm(CommandLine& app);

}  // namespace rubato
