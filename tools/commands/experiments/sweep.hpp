#pragma once
// Parts of rubato sweep that have files of their own.

#include "tools/commands/command.hpp"

namespace rubato {

class CommandLine;

void setup_sweep_slurm(CommandLine& app, Action& action);

}  // namespace rubato
